"""Reading an array through DLPack: its layout and address, without taking it over.

The structures are those of DLPack 0.x, which every producer gives to a consumer that asks for no version.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from rdna_kernels.errors import ArgumentError
from rdna_kernels.layout import Layout

DLPACK_ROCM = 10
"""kDLROCM: the kind of device that HIP memory has."""

_NO_SYNC = -1  # a producer's stream is the caller's business, as for any pointer
_KINDS = {0: "int", 1: "uint", 2: "float"}
_BFLOAT = 4


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def read_dlpack(array: Any) -> tuple[Layout, int]:
    """The layout (strides in bytes, a NumPy dtype) and the address of an array with `__dlpack__`.

    The capsule is not consumed, so it gives the array back to its producer as soon as it has been read.
    """
    capsule = array.__dlpack__(stream=_NO_SYNC)
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    dtype = _dtype(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim])
    else:
        strides = tuple(dtype.itemsize * int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))
    return (shape, strides, dtype), (tensor.data or 0) + tensor.byte_offset


def _dtype(described: _DataType) -> np.dtype[Any]:
    code, bits, lanes = described.code, described.bits, described.lanes
    if lanes == 1 and code == _BFLOAT and bits == 16:
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if lanes == 1 and code in _KINDS and bits in (16, 32, 64):
        return np.dtype(f"{_KINDS[code]}{bits}")
    raise ArgumentError(f"an array has DLPack type ({code}, {bits} bits, {lanes} lanes), which no kernel takes")
