"""The emulated HIP runtime by ctypes, as tests call it."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from device_compiler import compile_hip
from rdna_emulator import hip_library

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, NO_DEVICE, INVALID_DEVICE = 0, 1, 2, 9, 100, 101
INVALID_IMAGE, NO_BINARY, FILE_NOT_FOUND, INVALID_HANDLE, ILLEGAL_STATE, NOT_FOUND = 200, 209, 301, 400, 401, 500
NOT_READY, ILLEGAL_ADDRESS, LAUNCH_FAILURE = 600, 700, 719
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_UNMATCHED, CAPTURE_UNJOINED = 900, 901, 903, 904
CAPTURE_ISOLATION, CAPTURE_IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = 905, 906, 907, 908
TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS = 1, 2, 3, 4

SOURCE = """
KERNEL scale(float* y, const int* n, float a) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < *n) y[i] = y[i] * a + 1;
}
KERNEL race(int* y) {
  __shared__ int cell[64];
  cell[__builtin_amdgcn_workitem_id_x()] = __builtin_amdgcn_workitem_id_x();
  y[__builtin_amdgcn_workitem_id_x()] = cell[63 - __builtin_amdgcn_workitem_id_x()];
}
KERNEL sizes(int* y) {
  if (__builtin_amdgcn_workitem_id_x() == 0) y[__builtin_amdgcn_workgroup_id_x()] = __builtin_amdgcn_workgroup_size_x();
}
__device__ int table[4] = {1, 2, 3, 4};
KERNEL sum(int* y) { y[0] = table[0] + table[1] + table[2] + table[3]; }
"""


class HipError(Exception):
    def __init__(self, name: str, code: int, message: str) -> None:
        super().__init__(f"{name}: {code}: {message}")
        self.name, self.code, self.message = name, code, message


@functools.cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(hip_library()))
    found.rdna_hip_message.restype = ctypes.c_char_p
    found.rdna_hip_calls.restype = ctypes.c_ulonglong
    found.hipGetErrorName.restype = ctypes.c_char_p
    found.hipGetErrorString.restype = ctypes.c_char_p
    return found


@functools.cache
def code_object(target: str = "gfx1151") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return compile_hip(SOURCE, target, Path(folder))


def fresh(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Hip:
    """The runtime as it starts with RDNA_EMULATED_<name> set to each value; the caller's monkeypatch undoes it."""
    for name, value in environment.items():
        monkeypatch.setenv(f"RDNA_EMULATED_{name}", value)
    library().rdna_hip_reset()
    return Hip()


class Hip:
    """Calls by name, with ints as sizes and addresses; what is no success is raised."""

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self.call, name)

    def code(self, name: str, *args: Any) -> int:
        values = [ctypes.c_size_t(value) if type(value) is int else value for value in args]
        return int(getattr(library(), name)(*values))

    def call(self, name: str, *args: Any) -> None:
        code = self.code(name, *args)
        if code:
            raise HipError(name, code, library().rdna_hip_message().decode())

    def handle(self, name: str, *args: Any) -> int:
        """What a call with an out parameter in front gives."""
        value = ctypes.c_void_p()
        self.call(name, ctypes.byref(value), *args)
        return value.value or 0

    def number(self, name: str, *args: Any) -> int:
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *args)
        return value.value

    def number_of_stream(self, name: str, stream: int) -> int:
        value = ctypes.c_int()
        self.call(name, stream, ctypes.byref(value))
        return value.value

    def function(self, name: str, target: str = "gfx1151") -> int:
        module = self.handle("hipModuleLoadData", code_object(target))
        return self.handle("hipModuleGetFunction", module, name.encode())

    def upload(self, array: npt.NDArray[Any]) -> int:
        address = self.handle("hipMalloc", array.nbytes)
        self.store(address, array)
        return address

    def store(self, address: int, array: npt.NDArray[Any]) -> None:
        self.hipMemcpy(address, array.ctypes.data, array.nbytes, TO_DEVICE)

    def download(self, address: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        result = np.empty_like(like)
        self.hipMemcpy(result.ctypes.data, address, result.nbytes, TO_HOST)
        return result

    def launch_code(self, function: int, grid: Any, block: Any, args: list[Any], stream: int = 0, lds: int = 0) -> int:
        """As kernelParams; ``args`` are ctypes values."""
        parameters = (ctypes.c_void_p * max(len(args), 1))(*(ctypes.addressof(value) for value in args))
        gx, gy, gz = grid if isinstance(grid, tuple) else (grid, 1, 1)
        bx, by, bz = block if isinstance(block, tuple) else (block, 1, 1)
        return self.code("hipModuleLaunchKernel", function, gx, gy, gz, bx, by, bz, lds, stream, parameters, None)

    def launch(self, function: int, grid: Any, block: Any, args: list[Any], stream: int = 0, lds: int = 0) -> None:
        code = self.launch_code(function, grid, block, args, stream, lds)
        if code:
            raise HipError("hipModuleLaunchKernel", code, library().rdna_hip_message().decode())

    def scale(self, function: int, y: int, n: int, a: float, stream: int = 0) -> None:
        self.launch(function, 4, 64, [ctypes.c_void_p(y), ctypes.c_void_p(n), ctypes.c_float(a)], stream)

    @contextmanager
    def fails(self, code: int, match: str = "") -> Iterator[None]:
        with pytest.raises(HipError, match=match or None) as caught:
            yield
        assert caught.value.code == code, caught.value
