"""The HIP runtime: found, opened when first needed, and the functions of it that are used.

Nothing is linked. The library that the process has loaded already (torch brings its own) is taken before any other, for
memory and streams of one runtime mean nothing to another.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import threading
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

from rdna_kernels.errors import ExecutorError, OutOfMemoryError

LIBRARY_VARIABLE = "RDNA_HIP_LIBRARY"
OLDEST_VERSION = 6_00_00000
"""The oldest runtime served: 6.0, the first with today's device properties."""

OUT_OF_MEMORY = 2
NO_DEVICE = 100

_NAME = "libamdhip64.so"
_VERSIONED_NAMES = (f"{_NAME}.7", f"{_NAME}.6")
_LOADED_NAME = re.compile(r"libamdhip64(-[0-9a-f]+)?\.so")  # wheels put a hash into the names of what they bundle
_MAPS = Path("/proc/self/maps")
_PROPERTIES_BYTES = 1 << 16  # the largest so far has 1,472
_NAME_BYTES = 256
_DEVICE_MEMORY = (2, 3)  # hipMemoryTypeDevice, hipMemoryTypeManaged

_UINT3 = (c_uint, c_uint, c_uint)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "hipRuntimeGetVersion": (POINTER(c_int),),
    "hipGetDeviceCount": (POINTER(c_int),),
    "hipGetDevice": (POINTER(c_int),),
    "hipSetDevice": (c_int,),
    "hipDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "hipDeviceGetName": (c_char_p, c_int, c_int),
    "hipGetDevicePropertiesR0600": (c_void_p, c_int),
    "hipModuleLoadData": (POINTER(c_void_p), c_char_p),
    "hipModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "hipModuleLaunchKernel": (c_void_p, *_UINT3, *_UINT3, c_uint, c_void_p, c_void_p, c_void_p),
    "hipMalloc": (POINTER(c_void_p), c_size_t),
    "hipFree": (c_void_p,),
    "hipMemset": (c_void_p, c_int, c_size_t),
    "hipMemcpy": (c_void_p, c_void_p, c_size_t, c_int),
    "hipPointerGetAttributes": (c_void_p, c_void_p),
    "hipStreamSynchronize": (c_void_p,),
    "hipStreamIsCapturing": (c_void_p, POINTER(c_int)),
}


class HipLibrary:
    """An opened runtime. Methods raise ExecutorError, with the function, the error's name and its text."""

    def __init__(self, path: str) -> None:
        """Open the runtime at a path, or by a name that the system's loader knows; OSError when it cannot be."""
        self.path = path
        self.version = 0  # until the runtime has told it
        self._library = library = ctypes.CDLL(path)
        missing = [name for name in _SIGNATURES if not hasattr(library, name)]
        if "hipRuntimeGetVersion" in missing:
            raise ExecutorError(f"{path} is no HIP runtime: it has no hipRuntimeGetVersion")
        for name, arguments in _SIGNATURES.items():
            if name not in missing:
                getattr(library, name).argtypes = arguments
        for name in ("hipGetErrorName", "hipGetErrorString"):
            text = getattr(library, name)
            text.argtypes, text.restype = (c_int,), c_char_p
        self.version = self._integer("hipRuntimeGetVersion")
        if self.version < OLDEST_VERSION or missing:
            lacks = f" and lacks {', '.join(missing)}" if missing else ""
            raise ExecutorError(
                f"the HIP runtime {path} has version {self.version_text}{lacks}; 6.0 or newer is needed: update ROCm, "
                f"or name a newer libamdhip64.so in {LIBRARY_VARIABLE}"
            )
        self.launch_kernel = library.hipModuleLaunchKernel
        """hipModuleLaunchKernel itself, whose result the caller checks: the one function that each call needs."""

    @property
    def version_text(self) -> str:
        """The version as people write it: "7.0.51831"."""
        if not self.version:
            return "of unknown version"
        return f"{self.version // 10_000_000}.{self.version // 100_000 % 100}.{self.version % 100_000}"

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; ExecutorError unless it succeeds, OutOfMemoryError for want of memory."""
        code = getattr(self._library, function)(*arguments)
        if code:
            raise self.error(function, code)

    def error(self, function: str, code: int) -> ExecutorError:
        """The error of a function's result."""
        texts = (self._library.hipGetErrorName, self._library.hipGetErrorString)
        name, text = (ask(code).decode(errors="replace") for ask in texts)
        self._library.hipGetLastError()  # or the runtime tells whoever asks next
        kind = OutOfMemoryError if code == OUT_OF_MEMORY else ExecutorError
        return kind(f"{function} of the HIP runtime {self.version_text} failed: {name} ({code}), {text}")

    def device_count(self) -> int:
        """How many devices the runtime shows; 0 where it shows none."""
        count = c_int()
        code = self._library.hipGetDeviceCount(ctypes.byref(count))
        if code == NO_DEVICE:
            return 0
        if code:
            raise self.error("hipGetDeviceCount", code)
        return count.value

    def attribute(self, attribute: int, device: int) -> int:
        """An attribute of a device by its number in hipDeviceAttribute_t (ROCm 6 and 7 agree on those used here)."""
        return self._integer("hipDeviceGetAttribute", attribute, device)

    def device_name(self, device: int) -> str:
        """A device's name, for people."""
        name = ctypes.create_string_buffer(_NAME_BYTES)
        self.call("hipDeviceGetName", name, _NAME_BYTES, device)
        return name.value.decode(errors="replace")

    def device_target(self, device: int) -> str:
        """A device's target ("gfx1151"), without features such as ":xnack-".

        gcnArchName is looked for in the properties by its text, past the name that they begin with: its place differs
        between versions of the struct.
        """
        properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self.call("hipGetDevicePropertiesR0600", properties, device)
        raw = properties.raw
        start = raw.find(b"gfx", _NAME_BYTES)
        if start < 0:
            raise ExecutorError(f"the properties of HIP device {device} name no target (gfx...) of {self.path}")
        return raw[start : raw.index(b"\0", start)].decode(errors="replace").partition(":")[0]

    def device_of(self, address: int) -> int | None:
        """The device whose memory an address belongs to, None where it is no device's."""
        attributes = (c_int * 64)()  # type and device come first, then pointers and flags
        if self._library.hipPointerGetAttributes(attributes, address):
            self._library.hipGetLastError()
            return None
        return attributes[1] if attributes[0] in _DEVICE_MEMORY else None

    def current_device(self) -> int:
        """The calling thread's device."""
        return self._integer("hipGetDevice")

    def is_capturing(self, stream: int) -> bool:
        """Whether a graph is being captured on a stream."""
        status = c_int()
        self.call("hipStreamIsCapturing", stream, ctypes.byref(status))
        return status.value != 0

    def _integer(self, function: str, *arguments: Any) -> int:
        value = c_int()
        self.call(function, ctypes.byref(value), *arguments)
        return value.value


_lock = threading.Lock()
_opened: HipLibrary | None = None


def hip_library() -> HipLibrary:
    """The runtime, opened at the first call: the one that is loaded, that of RDNA_HIP_LIBRARY, by soname, of ROCM_PATH.

    ExecutorError, naming what was tried and what helps, where there is none or it is too old.
    """
    global _opened
    with _lock:
        if _opened is None:
            _opened = _open()
        return _opened


def loaded_library() -> str | None:
    """The path of the HIP runtime that the process has loaded, if it has one."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        path = line.partition("/")[2]
        if _LOADED_NAME.match(path.rpartition("/")[2]):
            return f"/{path}"
    return None


def _open() -> HipLibrary:
    loaded = loaded_library()
    if loaded is not None:
        return HipLibrary(loaded)
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        try:
            return HipLibrary(named)
        except OSError as error:
            raise ExecutorError(
                f"{LIBRARY_VARIABLE} is {named!r}, which cannot be opened ({error}); it must be the path of a "
                "libamdhip64.so"
            ) from error
    root = os.environ.get("ROCM_PATH") or "/opt/rocm"
    names = (*_VERSIONED_NAMES, f"{root}/lib/{_NAME}")
    for name in names:
        with contextlib.suppress(OSError):
            return HipLibrary(name)
    raise ExecutorError(
        f"there is no HIP runtime: {', '.join(names)} cannot be opened, and no library that is loaded is one. Install "
        f"ROCm 6 or 7 or a ROCm build of torch, or name the runtime in {LIBRARY_VARIABLE}; without a GPU, pass NumPy "
        "arrays or CPU tensors, which run emulated"
    )
