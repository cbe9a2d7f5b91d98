"""The octave format as its definition reads, step by step in NumPy: what octave-quant's paths are measured against.

It checks nothing, works on all rows at once, and shares no code with octave-quant.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_LEVELS = {
    3: np.array([-127, -79, -45, -14, 14, 45, 79, 127], np.float32),
    4: np.array([-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126], np.float32),
}
_MULTIPLIER = {3: np.float32(59), 4: np.float32(46)}
_MAX_SCALE = np.float32(65504)


class Format(Protocol):
    """What describes a format; `octave_quant.OctaveFormat` does."""

    @property
    def head_size(self) -> int: ...
    @property
    def rope_dim(self) -> int: ...
    @property
    def v_bits(self) -> int: ...
    @property
    def compact(self) -> bool: ...


def quantize_plainly(key: NDArray[Any], value: NDArray[Any], fmt: Format) -> NDArray[np.uint8]:
    """Slots ``[tokens, heads, slot_bytes]`` of ``key`` and ``value`` ``[tokens, heads, head_size]``."""
    key_blocks = _split(_rotate(key, k_block(fmt)), k_block(fmt))
    wide = 0 if fmt.compact else fmt.rope_dim // 64
    wide_codes, wide_scales = _quantize(key_blocks[..., :wide, :], 4)
    narrow_codes, narrow_scales = _quantize(key_blocks[..., wide:, :], 3)
    v_codes, v_scale = _quantize(_rotate(value, v_block(fmt)), fmt.v_bits)
    scales = np.concatenate((wide_scales, narrow_scales, v_scale[..., None]), axis=-1)
    parts = [_pack(_join(wide_codes), 4), _pack(_join(narrow_codes), 3), _pack(v_codes, fmt.v_bits)]
    parts.append(scales.view(np.uint8))
    padding = -sum(part.shape[-1] for part in parts) % (4 if fmt.compact else 8)
    parts.append(np.zeros((*key.shape[:2], padding), np.uint8))
    return np.concatenate(parts, axis=-1)


def dequantize_plainly(slots: NDArray[np.uint8], fmt: Format) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Key and value, fp32 ``[tokens, heads, head_size]``, of slots ``[tokens, heads, slot_bytes]``."""
    head_size, block = fmt.head_size, k_block(fmt)
    wide = 0 if fmt.compact else fmt.rope_dim
    lengths = [wide // 2, (head_size - wide) * 3 // 8, head_size * fmt.v_bits // 8, (head_size // block + 1) * 2]
    wide_part, narrow_part, v_part, scales, _ = np.split(slots, np.cumsum(lengths), axis=-1)
    scale = np.ascontiguousarray(scales).view(np.float16).astype(np.float32) / np.float32(64)
    key = np.concatenate((_LEVELS[4][_unpack(wide_part, 4)], _LEVELS[3][_unpack(narrow_part, 3)]), axis=-1)
    key = _join(_split(key, block) * scale[..., :-1, None])
    value = _LEVELS[fmt.v_bits][_unpack(v_part, fmt.v_bits)] * scale[..., -1:]
    signs = _signs(head_size)
    return _transform(key, block) * signs, _transform(value, v_block(fmt)) * signs


def k_block(fmt: Format) -> int:
    """Dimensions of a K block, each with a scale."""
    return fmt.head_size if fmt.compact else 64


def v_block(fmt: Format) -> int:
    """Dimensions that V's transform takes at a time."""
    return fmt.head_size if fmt.head_size & (fmt.head_size - 1) == 0 else 64


def _signs(n: int) -> NDArray[np.float32]:
    draws = np.random.RandomState(0x5E17).randint(0, 2**32, n, np.uint32)
    return np.where(draws & 1, np.float32(-1), np.float32(1))


def _rotate(x: NDArray[Any], block: int) -> NDArray[np.float32]:
    return _transform(x.astype(np.float32) * _signs(x.shape[-1]), block)


def _transform(x: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    stride = 1
    while stride < block:
        pairs = x.reshape(-1, 2, stride)
        x = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).reshape(x.shape)
        stride *= 2
    return x * np.float32(1 / np.sqrt(block))


def _quantize(y: NDArray[np.float32], bits: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Codes and scales of groups ``[..., n]``; a group that is not finite has scale 0, and any codes."""
    levels = _LEVELS[bits]
    midpoints = (levels[1:] + levels[:-1]) / 2
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        energy = np.sum(y * y, axis=-1)
        rms = np.maximum(np.sqrt(energy / np.float32(y.shape[-1])), np.float32(1e-12))
        t = y / rms[..., None] * _MULTIPLIER[bits]
        codes = np.searchsorted(midpoints, t, side="left")
        dot = np.sum(y * levels[np.minimum(codes, len(midpoints))], axis=-1)
        scale = np.where(dot > 0, np.minimum(np.float32(64) * energy / dot, _MAX_SCALE), np.float32(0))
    return codes.astype(np.uint8), scale.astype(np.float16)


def _pack(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    if bits == 4:
        pairs = codes.reshape(*codes.shape[:-1], -1, 2, 4)
        halves: NDArray[np.uint8] = pairs[..., 0, :] | pairs[..., 1, :] << np.uint8(4)
        return halves.reshape(*codes.shape[:-1], -1)
    low, high = codes & 3, codes >> 2
    fours = low.reshape(*codes.shape[:-1], -1, 4, 4)
    low_plane = fours[..., 0, :] | fours[..., 1, :] << 2 | fours[..., 2, :] << 4 | fours[..., 3, :] << 6
    eights = high.reshape(*codes.shape[:-1], -1, 8, 4)
    high_plane = np.zeros_like(eights[..., 0, :])
    for bit in range(8):
        high_plane |= eights[..., bit, :] << bit
    rows = codes.shape[:-1]
    return np.concatenate((low_plane.reshape(*rows, -1), high_plane.reshape(*rows, -1)), axis=-1)


def _unpack(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    rows = packed.shape[:-1]
    if bits == 4:
        dwords = packed.reshape(*rows, -1, 4)
        return np.stack((dwords & 15, dwords >> 4), axis=-2).reshape(*rows, -1)
    low_plane, high_plane = np.split(packed, [packed.shape[-1] * 2 // 3], axis=-1)
    low = np.stack([low_plane.reshape(*rows, -1, 4) >> 2 * i & 3 for i in range(4)], axis=-2)
    high = np.stack([high_plane.reshape(*rows, -1, 4) >> i & 1 for i in range(8)], axis=-2)
    codes: NDArray[np.uint8] = low.reshape(*rows, -1) | high.reshape(*rows, -1) << 2
    return codes


def _split(x: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    return x.reshape(*x.shape[:-1], -1, block)


def _join(x: NDArray[Any]) -> NDArray[Any]:
    return x.reshape(*x.shape[:-2], -1)
