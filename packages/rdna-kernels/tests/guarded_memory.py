"""Memory with hard edges: arrays that end where the process' memory ends, and huge ones that cost nothing."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MAP_NORESERVE = 0x4000  # Linux; mmap names it from Python 3.13 on
_PROT_NONE = 0


def at_end_of_mapping(array: Array) -> Array:
    """A copy (dense in the array's own order of dimensions) whose last byte is followed by a page without access."""
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    dense = array.transpose(order)
    room = -(-dense.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    view = np.frombuffer(memory, np.uint8)
    guard = view.ctypes.data + room
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(guard), mmap.PAGESIZE, _PROT_NONE):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    copy = view[room - dense.nbytes : room].view(array.dtype).reshape(dense.shape)
    copy[...] = dense
    return copy.transpose(np.argsort(order))


def sparse_zeros(shape: Sequence[int], dtype: Any) -> Array:
    """Zeros of any size; only what is written takes memory."""
    kind = np.dtype(dtype)
    size = kind.itemsize
    for length in shape:
        size *= length
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    array: Array = np.frombuffer(memory, np.uint8).view(kind).reshape(shape)
    return array
