"""Arrays in a GPU's memory for callers without torch: scratch, outputs, and tests."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdna_kernels.arrays import ArrayKind, Look, dense_strides, register_kind
from rdna_kernels.errors import KernelsError
from rdna_kernels.executors.hip_device import on_device
from rdna_kernels.executors.hip_library import HipLibrary
from rdna_kernels.layout import Layout

_TO_DEVICE, _TO_HOST = 1, 2


class DeviceArray:
    """A dense array in the memory of a HIP device, freed with its last view.

    It has the interface that GPU libraries share (`__cuda_array_interface__`). Copies go through the host and wait for
    the device.
    """

    def __init__(self, library: HipLibrary, device: int, shape: Sequence[int], dtype: Any) -> None:
        """Allocate; OutOfMemoryError when the device has no room."""
        self._set(library, device, tuple(shape), np.dtype(dtype), 0)
        pointer = ctypes.c_void_p()
        with on_device(library, device):
            library.call("hipMalloc", ctypes.byref(pointer), max(self.nbytes, 1))
        self.address = pointer.value or 0
        self._owner: object = self
        # At the end of the process the runtime frees everything itself.
        weakref.finalize(self, _free, library, device, self.address).atexit = False

    def _set(
        self, library: HipLibrary, device: int, shape: tuple[int, ...], dtype: np.dtype[Any], address: int
    ) -> None:
        self._library = library
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.strides = dense_strides(shape, dtype.itemsize)
        self.address = address
        self.signature = (shape, dtype, device)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def view(self, shape: Sequence[int]) -> DeviceArray:
        """The first elements of this array in another shape."""
        part = DeviceArray.__new__(DeviceArray)
        part._set(self._library, self.device, tuple(shape), self.dtype, self.address)
        part._owner = self._owner
        if part.nbytes > self.nbytes:
            raise ValueError(f"a view of shape {tuple(shape)} is larger than the array of shape {self.shape}")
        return part

    def fill_zero(self) -> DeviceArray:
        """Set every byte to zero; returns this array."""
        with on_device(self._library, self.device):
            self._library.call("hipMemset", self.address, 0, self.nbytes)
        return self

    def set(self, values: np.ndarray[Any, Any]) -> DeviceArray:
        """Copy from the host, `values` of this array's shape and dtype; returns this array."""
        if values.shape != self.shape or values.dtype != self.dtype:
            raise ValueError(
                f"values have shape {values.shape} and dtype {values.dtype}, the array {self.shape} and {self.dtype}"
            )
        dense = np.ascontiguousarray(values)
        self._copy(self.address, dense.__array_interface__["data"][0], _TO_DEVICE)
        return self

    def get(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        values = np.empty(self.shape, self.dtype)
        self._copy(values.__array_interface__["data"][0], self.address, _TO_HOST)
        return values

    def _copy(self, to: int, source: int, kind: int) -> None:
        with on_device(self._library, self.device):
            self._library.call("hipMemcpy", to, source, self.nbytes, kind)


def _free(library: HipLibrary, device: int, address: int) -> None:
    # Nobody is there to hear of it.
    with contextlib.suppress(KernelsError), on_device(library, device):
        library.call("hipFree", address)


class _DeviceArrayKind(ArrayKind):
    def look(self, array: Any) -> Look:
        return array.signature, array.address

    def layout(self, array: Any) -> Layout:
        return (array.shape, array.strides, array.dtype)

    def place(self, array: Any) -> str:
        return f"hip:{array.device}"


register_kind(DeviceArray, _DeviceArrayKind())
