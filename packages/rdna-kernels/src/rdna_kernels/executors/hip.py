"""The hip executor: built code objects run on an AMD GPU through the ROCm runtime."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.code_object import kernel_arguments
from rdna_kernels.errors import ArgumentError, ExecutorError, OutOfMemoryError
from rdna_kernels.executors.device_array import DeviceArray
from rdna_kernels.executors.hip_device import device_properties, on_device, require_built, warn_of_override
from rdna_kernels.executors.hip_library import HipLibrary, hip_library
from rdna_kernels.executors.interface import DeviceProperties, Executor, Function

_TO_HOST = 2
_ELF_HEADER = 64
_Pointers = ctypes.c_char_p * 1


class _Module(NamedTuple):
    handle: int
    code: bytes


class HipExecutor(Executor):
    """Runs kernels on HIP device number `device`. Untested on hardware.

    Takes torch tensors of a ROCm build, and arrays with `__cuda_array_interface__` or DLPack in the device's memory.
    Launches go to torch's current stream where torch drives the device, else to stream 0, or to that of `on_stream`,
    and are not waited for. With
    out and scratch given a call neither allocates nor waits, so it can be captured in a graph. `debug` checks values
    before and waits after each launch. `catalogue` holds the code objects, by default those that are installed;
    `library` is the runtime, by default the one that `hip_library` finds.
    ExecutorError without a runtime, a device or a build for it; ArgumentError for a device that is not there.
    """

    name: ClassVar[str] = "hip"
    tracks_memory: ClassVar[bool] = False

    def __init__(
        self,
        device: int = 0,
        *,
        catalogue: Catalogue | None = None,
        library: HipLibrary | None = None,
        debug: bool = False,
    ) -> None:
        self.library = hip_library() if library is None else library
        self._properties = device_properties(self.library, device)
        super().__init__(self._properties.target, Catalogue.installed() if catalogue is None else catalogue)
        warn_of_override(self._properties)
        require_built(self._properties, device, self.catalogue)
        self.device = device
        self.debug = debug
        self.checks_values = debug
        self.place = f"hip:{device}"
        self._alone = self.library.device_count() == 1
        self._launch_kernel = self.library.launch_kernel
        self._chosen = threading.local()

    @property
    def properties(self) -> DeviceProperties:
        return self._properties

    def host_values(self, array: Any) -> np.ndarray[Any, Any] | None:
        if not self.debug:
            return None
        (shape, strides, dtype), address = self.layout(array), self.address(array)
        kind = np.dtype(str(dtype).removeprefix("torch."))
        reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + kind.itemsize
        raw = np.empty(0 if 0 in shape else reach, np.uint8)
        if raw.size:
            with on_device(self.library, self.device):
                self.library.call("hipStreamSynchronize", self.stream())
                self.library.call("hipMemcpy", raw.__array_interface__["data"][0], address, raw.size, _TO_HOST)
        return np.ndarray(shape, kind, raw, strides=strides)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        torch = _hip_torch()
        refusal: tuple[type[Exception], ...] = (OutOfMemoryError,) if torch is None else (torch.OutOfMemoryError,)
        try:
            if torch is None:
                return DeviceArray(self.library, self.device, shape, dtype)
            return torch.empty(tuple(shape), dtype=getattr(torch, str(dtype)), device=f"cuda:{self.device}")
        except refusal as error:
            raise OutOfMemoryError(
                f"no memory on HIP device {self.device} ({self._properties.name}) for {dtype} {tuple(shape)}: {error}; "
                "free arrays, call for parts of the batch, or pass scratch and out"
            ) from error

    def empty_beside(self, array: Any, shape: Sequence[int]) -> Any:
        dtype = array.dtype
        return self.empty(shape, str(dtype).removeprefix("torch.") if _hip_torch() is not None else dtype)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        array = self.empty(shape, dtype)
        return array.fill_zero() if isinstance(array, DeviceArray) else array.zero_()

    def cut(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.view(shape) if isinstance(array, DeviceArray) else super().cut(array, shape)

    def stream(self) -> int:
        chosen: int | None = getattr(self._chosen, "stream", None)
        return _current_stream(self.device) if chosen is None else chosen

    @contextmanager
    def on_stream(self, stream: int) -> Iterator[None]:
        """Launch on a stream (a hipStream_t as an integer) for as long as the context lasts, in this thread."""
        before = getattr(self._chosen, "stream", None)
        self._chosen.stream = stream
        try:
            yield
        finally:
            self._chosen.stream = before

    def may_allocate(self, stream: int, kept: bool) -> bool:
        if not kept and _hip_torch() is not None:
            return True  # torch allocates from the graph's own pool
        with on_device(self.library, self.device):
            return not self.library.is_capturing(stream)

    def load(self, code: bytes) -> Any:
        if not self.may_allocate(self.stream(), kept=True):
            raise ArgumentError(
                "a graph is being captured, in which no kernel can be loaded: make the call once before the capture"
            )
        if len(code) < _ELF_HEADER:  # the runtime is told no size, and would read past it
            raise ExecutorError(f"a code object of {len(code)} bytes is truncated")
        module = ctypes.c_void_p()
        try:
            with on_device(self.library, self.device):
                self.library.call("hipModuleLoadData", ctypes.byref(module), code)
        except OutOfMemoryError:
            raise
        except ExecutorError as error:
            raise ExecutorError(
                f"HIP device {self.device} ({self._properties.name}, {self.target}) refuses a code object: {error}; "
                f"built targets: {self.catalogue.built_targets}, compiled by {self.catalogue.compiler}. A newer ROCm "
                "may take it, else"
            ) from error
        return _Module(module.value or 0, code)

    def function(self, module: Any, name: str) -> Function:
        try:
            arguments = kernel_arguments(module.code, name)
        except ValueError as error:
            raise ExecutorError(f"the code object of {name} cannot be launched: {error}") from error
        if [(argument.kind, argument.offset) for argument in arguments] != [("by_value", 0)]:
            listed = ", ".join(f"{argument.kind} of {argument.size} bytes" for argument in arguments)
            raise ExecutorError(f"kernel {name} takes {listed or 'no arguments'}; one struct by value can be passed")
        function = ctypes.c_void_p()
        with on_device(self.library, self.device):
            self.library.call("hipModuleGetFunction", ctypes.byref(function), module.handle, name.encode())
        return Function(name, (function.value, arguments[0].size))

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: int,
        arguments: bytes,
        memory: Sequence[tuple[str, Any]],
        stream: Any = None,
    ) -> Mapping[str, Any]:
        handle, size = function.handle
        if len(arguments) != size:
            raise ArgumentError(f"{function.name} takes {size} bytes of arguments, {len(arguments)} are given")
        if stream is None:
            stream = self.stream()
        # The runtime copies the arguments before it returns.
        if self._alone or self.library.current_device() == self.device:
            code = self._launch_kernel(handle, *grid, block, 1, 1, 0, stream, _Pointers(arguments), None)
        else:
            with on_device(self.library, self.device):
                code = self._launch_kernel(handle, *grid, block, 1, 1, 0, stream, _Pointers(arguments), None)
        if code:
            raise self.library.error(f"the launch of {function.name}, hipModuleLaunchKernel", code)
        if self.debug:
            with on_device(self.library, self.device):
                self.library.call("hipStreamSynchronize", stream)
        return {}


@lru_cache(maxsize=64)
def default_hip(device: int) -> HipExecutor:
    """The executor of a device, made at the first call and shared."""
    return HipExecutor(device)


def _hip_torch() -> Any:
    """torch, where it is imported and drives HIP devices."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.version.hip else None


@lru_cache(maxsize=1)
def _torch_stream(torch: Any) -> Callable[[int], int]:
    raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return raw

    def public(device: int) -> int:
        return int(torch.cuda.current_stream(device).cuda_stream)

    return public


def _current_stream(device: int) -> int:
    torch = sys.modules.get("torch")
    if torch is None or not torch.version.hip:
        return 0
    return _torch_stream(torch)(device)
