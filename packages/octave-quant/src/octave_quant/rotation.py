"""The rotation that spreads a vector's energy evenly over its coordinates: signs, then a Walsh-Hadamard transform."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from octave_quant.signs import signs


def rotate(x: ArrayLike, block: int) -> NDArray[np.float32]:
    """``H (s * x)`` in fp32 over the last axis of ``x`` ``[..., n]``; the result has the shape of ``x``.

    ``s`` are the first n `signs`, H the orthonormal Walsh-Hadamard transform (natural order) of each ``block`` of the
    axis. ValueError where ``block`` is no power of two or does not divide n.
    """
    values, block = _checked(x, block)
    return _transform(values * signs(values.shape[-1]), block)


def unrotate(y: ArrayLike, block: int) -> NDArray[np.float32]:
    """The inverse of `rotate`, up to fp32 rounding: transforms ``y`` ``[..., n]``, then multiplies by the signs."""
    values, block = _checked(y, block)
    return _transform(values, block) * signs(values.shape[-1])


def _checked(x: ArrayLike, block: int) -> tuple[NDArray[np.float32], int]:
    values = np.asarray(x, dtype=np.float32)
    if values.ndim == 0:
        raise ValueError("a single number was given; the last axis holds the dimensions of a head")
    if block < 1 or block & (block - 1):
        raise ValueError(f"block is {block}; the transform needs a power of two")
    if values.shape[-1] % block:
        raise ValueError(f"the last axis has {values.shape[-1]} dimensions; blocks of {block} do not divide it")
    return values, block


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
