"""Arrays placed the way device memory is: aligned to cache lines, 16-bit element types by name."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Bytes; device allocators align at least this much, so that no row straddles a 128-byte line needlessly.
ALIGNMENT = 256

_NUMPY_DTYPES: dict[str, np.dtype[Any]] = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of ``"fp16"`` or ``"bf16"`` (through ml_dtypes)."""
    return _NUMPY_DTYPES[name]


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An uninitialised C-ordered array whose first element stands at a multiple of ``ALIGNMENT`` bytes."""
    element = np.dtype(dtype)
    size = math.prod(shape) * element.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(element).reshape(shape)


def aligned_copy(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """``array`` converted to ``dtype`` in a fresh ``aligned_empty`` array."""
    copy = aligned_empty(array.shape, dtype)
    copy[...] = array
    return copy
