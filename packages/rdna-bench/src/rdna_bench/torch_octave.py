"""The octave format as its definition reads, step by step in torch on the CPU: another measure of octave-quant.

torch is imported when this module is; it is no requirement of rdna-bench.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from rdna_bench.plain_octave import Format, k_block, v_block

_LEVELS = {
    3: torch.tensor([-127.0, -79, -45, -14, 14, 45, 79, 127]),
    4: torch.tensor([-126.0, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126]),
}
_MULTIPLIER = {3: 59.0, 4: 46.0}
_MAX_SCALE = 65504.0


def quantize_in_torch(key: Any, value: Any, fmt: Format) -> Any:
    """Slots ``[tokens, heads, slot_bytes]`` of the tensors ``key`` and ``value`` ``[tokens, heads, head_size]``."""
    key_blocks = _rotate(key, k_block(fmt)).unflatten(-1, (-1, k_block(fmt)))
    wide = 0 if fmt.compact else fmt.rope_dim // 64
    wide_codes, wide_scales = _quantize(key_blocks[..., :wide, :], 4)
    narrow_codes, narrow_scales = _quantize(key_blocks[..., wide:, :], 3)
    v_codes, v_scale = _quantize(_rotate(value, v_block(fmt)), fmt.v_bits)
    scales = torch.cat((wide_scales, narrow_scales, v_scale[..., None]), dim=-1)
    parts = [_pack(wide_codes.flatten(-2), 4), _pack(narrow_codes.flatten(-2), 3), _pack(v_codes, fmt.v_bits)]
    parts.append(scales.view(torch.uint8))
    padding = -sum(part.shape[-1] for part in parts) % (4 if fmt.compact else 8)
    parts.append(torch.zeros(*key.shape[:2], padding, dtype=torch.uint8))
    return torch.cat(parts, dim=-1)


def dequantize_in_torch(slots: Any, fmt: Format) -> tuple[Any, Any]:
    """Key and value, fp32 ``[tokens, heads, head_size]``, of slots ``[tokens, heads, slot_bytes]``."""
    head_size, block = fmt.head_size, k_block(fmt)
    wide = 0 if fmt.compact else fmt.rope_dim
    lengths = [wide // 2, (head_size - wide) * 3 // 8, head_size * fmt.v_bits // 8, (head_size // block + 1) * 2]
    parts = slots.split([*lengths, slots.shape[-1] - sum(lengths)], dim=-1)
    scale = parts[3].contiguous().view(torch.float16).float() / 64
    key = torch.cat((_LEVELS[4][_unpack(parts[0], 4)], _LEVELS[3][_unpack(parts[1], 3)]), dim=-1)
    key = (key.unflatten(-1, (-1, block)) * scale[..., :-1, None]).flatten(-2)
    value = _LEVELS[fmt.v_bits][_unpack(parts[2], fmt.v_bits)] * scale[..., -1:]
    signs = _signs(head_size)
    return _transform(key, block) * signs, _transform(value, v_block(fmt)) * signs


def _signs(n: int) -> Any:
    draws = torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(0x5E17))
    return 1.0 - 2.0 * draws.float()


def _rotate(x: Any, block: int) -> Any:
    return _transform(x.float() * _signs(x.shape[-1]), block)


def _transform(x: Any, block: int) -> Any:
    stride = 1
    while stride < block:
        a, b = x.view(-1, 2, stride).unbind(1)
        x = torch.stack((a + b, a - b), dim=1).view(x.shape)
        stride *= 2
    return x * (1 / math.sqrt(block))


def _quantize(y: Any, bits: int) -> tuple[Any, Any]:
    levels = _LEVELS[bits]
    midpoints = (levels[1:] + levels[:-1]) / 2
    energy = (y * y).sum(-1)
    rms = (energy / y.shape[-1]).sqrt().clamp_min(1e-12)
    codes = torch.bucketize(y / rms[..., None] * _MULTIPLIER[bits], midpoints)
    dot = (y * levels[codes]).sum(-1)
    scale = torch.where(dot > 0, (64 * energy / dot).clamp_max(_MAX_SCALE), 0.0)
    return codes.to(torch.uint8), scale.half()


def _pack(codes: Any, bits: int) -> Any:
    if bits == 4:
        return _merge(codes, 4)
    return torch.cat((_merge(codes & 3, 2), _merge(codes >> 2, 1)), dim=-1)


def _merge(values: Any, width: int) -> Any:
    """Fields of ``width`` bits into dwords: field i of byte j is dimension 4 * i + j of the dword's."""
    fields = values.unflatten(-1, (-1, 8 // width, 4))
    merged = fields[..., 0, :].clone()
    for field in range(1, 8 // width):
        merged |= fields[..., field, :] << field * width
    return merged.flatten(-2)


def _unpack(packed: Any, bits: int) -> Any:
    if bits == 4:
        return _split(packed, 4)
    low = packed.shape[-1] * 2 // 3
    return _split(packed[..., :low], 2) | _split(packed[..., low:], 1) << 2


def _split(packed: Any, width: int) -> Any:
    dwords = packed.unflatten(-1, (-1, 4))
    fields = [dwords >> field * width & (1 << width) - 1 for field in range(8 // width)]
    return torch.stack(fields, dim=-2).flatten(-3).int()
