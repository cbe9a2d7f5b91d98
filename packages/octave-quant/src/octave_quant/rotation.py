"""The rotation that spreads a vector's energy evenly over its coordinates: signs, then a Walsh-Hadamard transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octave_quant.arguments import integer
from octave_quant.rows import as_rows, element_of, is_tensor, like, plain, widened
from octave_quant.signs import signs


def rotate(x: Any, block: int) -> Any:
    """``H (s * x)`` in fp32 over the last axis of ``x`` ``[..., n]``; the result has the shape and the kind of ``x``.

    ``s`` are the first n `signs`, H the orthonormal Walsh-Hadamard transform (natural order) of each ``block`` of the
    axis. ValueError where ``block`` is no power of two or does not divide n, TypeError where it is no integer, or ``x``
    not of real numbers.
    """
    return like(rotated(_checked(x, "x", block), block), x)


def unrotate(y: Any, block: int) -> Any:
    """The inverse of `rotate`, up to fp32 rounding: transforms ``y`` ``[..., n]``, then multiplies by the signs."""
    return like(unrotated(_checked(y, "y", block), block), y)


def rotated(x: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    """`rotate` of what is known to fit."""
    return _transform(x * signs(x.shape[-1]), block)


def unrotated(y: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    """`unrotate` of what is known to fit."""
    return _transform(y, block) * signs(y.shape[-1])


def _checked(x: Any, name: str, block: int) -> NDArray[np.float32]:
    block = integer(block, "block")
    values = in_fp32(x, name)
    if values.ndim == 0:
        raise ValueError("a single number was given; the last axis holds the dimensions of a head")
    if block < 1 or block & (block - 1):
        raise ValueError(f"block is {block}; the transform needs a power of two")
    if values.shape[-1] % block:
        raise ValueError(f"the last axis has {values.shape[-1]} dimensions; blocks of {block} do not divide it")
    return values


def in_fp32(x: Any, name: str) -> NDArray[np.float32]:
    """``x``, an array, a tensor or what NumPy makes an array of, in fp32; TypeError for what has no real numbers."""
    if is_tensor(x) and element_of(x) == "bfloat16":
        return widened(as_rows(x, name))
    values = plain(x, name)
    if values.dtype.kind not in "fiu" and element_of(values) != "bfloat16":
        raise TypeError(f"{name} has dtype {values.dtype}; it must be of real numbers")
    return values.astype(np.float32, copy=False)


def _transform(x: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    y = x.reshape(-1, block)
    stride = 1
    # This order of the butterflies is part of the format: another one rounds otherwise, and moves codes.
    while stride < block:
        pairs = y.reshape(-1, block // (2 * stride), 2, stride)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        y = np.stack((a + b, a - b), axis=2).reshape(-1, block)
        stride *= 2
    return (y * np.float32(1 / math.sqrt(block))).reshape(x.shape)
