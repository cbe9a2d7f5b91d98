"""The format in NumPy: serves everywhere, and says what the compiled core must give byte for byte.

All arithmetic is fp32, each operation rounded. The sum over a group of n coordinates goes in one order: four partial
sums, sum j of the coordinates j, j + 4, j + 8, ..., and of these (0 + 2) + (1 + 3). With this order every golden vector
is met, ties included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octave_quant.codebook import LEVELS, MIDPOINTS, MULTIPLIERS
from octave_quant.formats import OctaveFormat
from octave_quant.packing import packed_codes, unpacked_codes
from octave_quant.rotation import rotated, unrotated
from octave_quant.rows import Rows, widened

NAME = "numpy"

Float32 = NDArray[np.float32]
_LANES = 4
_LEAST_RMS = np.float32(1e-12)
_MOST = np.float32(np.finfo(np.float16).max)
_CHUNK_BYTES = 1 << 20


def encode(key: Rows, value: Rows, fmt: OctaveFormat, out: NDArray[np.uint8]) -> None:
    """Writes the slots of ``key`` and ``value`` ``[tokens, heads, head_size]`` to ``out`` ``[tokens, heads, slot]``.

    A group with NaN or Inf gets the scale 0. Every byte of a slot is written, its padding included.
    """
    for part in _chunks(out.shape[0], out.shape[1], fmt):
        out[part] = _slots(widened(key, part), widened(value, part), fmt)


def decode(slots: NDArray[np.uint8], fmt: OctaveFormat, in_rotated_basis: bool, key: Float32, value: Float32) -> None:
    """Writes what ``slots`` ``[tokens, heads, slot]`` hold to ``key`` and ``value`` ``[tokens, heads, head_size]``."""
    for part in _chunks(slots.shape[0], slots.shape[1], fmt):
        with np.errstate(invalid="ignore", over="ignore"):
            key[part], value[part] = _vectors(slots[part], fmt, in_rotated_basis)


def _chunks(tokens: int, heads: int, fmt: OctaveFormat) -> list[slice]:
    step = max(1, _CHUNK_BYTES // (4 * fmt.head_size * max(heads, 1)))
    return [slice(first, first + step) for first in range(0, tokens if heads else 0, step)]


def _slots(key: Float32, value: Float32, fmt: OctaveFormat) -> NDArray[np.uint8]:
    slots = np.zeros((*key.shape[:-1], fmt.slot_bytes), np.uint8)
    scales = slots[..., fmt.off_scales :][..., : 2 * fmt.num_scales].view(np.float16)
    wide, blocks = fmt.wide, fmt.k_rotation_block
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        k = rotated(key, blocks).reshape(*key.shape[:-1], -1, blocks)
        v = rotated(value, fmt.v_rotation_block)
        wide_blocks = wide // blocks
        if wide:
            codes, scales[..., :wide_blocks] = _quantize(k[..., :wide_blocks, :], 4)
            slots[..., : fmt.off_k_nope] = packed_codes(codes.reshape(*key.shape[:-1], wide), 4)
        if wide < fmt.head_size:
            codes, scales[..., wide_blocks:-1] = _quantize(k[..., wide_blocks:, :], 3)
            slots[..., fmt.off_k_nope : fmt.off_v] = packed_codes(
                codes.reshape(*key.shape[:-1], fmt.head_size - wide), 3
            )
        codes, scales[..., -1] = _quantize(v, fmt.v_bits)
    slots[..., fmt.off_v : fmt.off_scales] = packed_codes(codes, fmt.v_bits)
    return slots


def _quantize(y: Float32, bits: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Codes of groups ``[..., n]`` of rotated coordinates, and their scales ``[...]``."""
    energy = _sum(y * y)
    root = np.sqrt(energy / np.float32(y.shape[-1]))
    rms = np.where(root > _LEAST_RMS, root, _LEAST_RMS)
    scaled = y / rms[..., None] * MULTIPLIERS[bits]
    codes = np.zeros(y.shape, np.uint8)
    for midpoint in MIDPOINTS[bits]:
        codes += scaled > midpoint
    dot = _sum(y * LEVELS[bits][codes])
    scale = np.float32(64) * energy / dot
    # An Inf in a block's first dimension gives it to all coordinates with one sign, and so to dot.
    valid = (dot > 0) & (dot < np.inf)
    return codes, np.where(valid, np.where(scale < _MOST, scale, _MOST), np.float32(0)).astype(np.float16)


def _sum(terms: Float32) -> Float32:
    lanes = terms.reshape(*terms.shape[:-1], -1, _LANES)
    sums = lanes[..., 0, :]
    for i in range(1, lanes.shape[-2]):
        sums = sums + lanes[..., i, :]
    total: Float32 = (sums[..., 0] + sums[..., 2]) + (sums[..., 1] + sums[..., 3])
    return total


def _vectors(slots: NDArray[np.uint8], fmt: OctaveFormat, in_rotated_basis: bool) -> tuple[Float32, Float32]:
    scales = np.ascontiguousarray(slots[..., fmt.off_scales :][..., : 2 * fmt.num_scales]).view(np.float16)
    scales_64 = scales.astype(np.float32) / np.float32(64)
    wide, block = fmt.wide, fmt.k_rotation_block
    narrow = LEVELS[3][unpacked_codes(slots[..., fmt.off_k_nope : fmt.off_v], 3)]
    k = (
        np.concatenate((LEVELS[4][unpacked_codes(slots[..., : fmt.off_k_nope], 4)], narrow), axis=-1)
        if wide
        else narrow
    )
    v = LEVELS[fmt.v_bits][unpacked_codes(slots[..., fmt.off_v : fmt.off_scales], fmt.v_bits)]
    k = (k.reshape(*k.shape[:-1], -1, block) * scales_64[..., :-1, None]).reshape(k.shape)
    v = v * scales_64[..., -1:]
    return (k, v) if in_rotated_basis else (unrotated(k, block), unrotated(v, fmt.v_rotation_block))
