"""Slots in a paged cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octave_quant import path
from octave_quant.formats import OctaveFormat
from octave_quant.quantization import checked_rows
from octave_quant.rows import Rows, as_array

_CHUNK_BYTES = 1 << 22
_MOST_SLOTS = 2**31


def store(key: Any, value: Any, cache: Any, slot_mapping: Any, fmt: OctaveFormat, *, nonfinite: str = "zero") -> None:
    """Quantizes ``key`` and ``value`` ``[T, H, head_size]`` into a cache.

    cache: uint8 ``[blocks, H, block_size, slot_bytes]``, with any strides but the last, which is 1.
    slot_mapping: int32 or int64 ``[T]``; token t goes to block ``slot // block_size``, place ``slot % block_size``. A
        negative slot writes nothing. Of tokens with one slot, the last one stays.
    nonfinite: as for `quantize`.

    All arguments are checked first: a call that fails leaves the cache as it was. ValueError for shapes and slots,
    TypeError for dtypes and kinds.
    """
    keys, values = checked_rows(key, value, fmt, nonfinite)
    blocks = checked_cache(cache, fmt)
    if not blocks.flags.writeable:
        raise ValueError("cache is read-only; store writes to it")
    if any(stride == 0 and size > 1 for stride, size in zip(blocks.strides, blocks.shape, strict=True)):
        raise ValueError(f"cache has strides {blocks.strides}; slots of it share memory")
    tokens, heads = keys.values.shape[:2]
    if blocks.shape[1] != heads:
        raise ValueError(f"cache has {blocks.shape[1]} KV heads and key has {heads}; they must be the same")
    slots = _checked_slots(slot_mapping, tokens, blocks)
    written = np.flatnonzero(slots >= 0)
    # Of equal slots the last one is kept here, so that the order in which a path or NumPy writes does not matter.
    _, last = np.unique(slots[written][::-1], return_index=True)
    written = np.sort(written[written.size - 1 - last])
    step = max(1, _CHUNK_BYTES // max(heads * fmt.slot_bytes, 1))
    for first in range(0, written.size, step):
        part = written[first : first + step]
        rows = slice(first, first + step) if written.size == tokens else part  # a slice copies nothing
        packed = np.empty((part.size, heads, fmt.slot_bytes), np.uint8)
        path.active().encode(
            Rows(keys.values[rows], keys.element), Rows(values.values[rows], values.element), fmt, packed
        )
        block, place = np.divmod(slots[part], blocks.shape[2])
        blocks[block, :, place] = packed


def checked_cache(cache: Any, fmt: OctaveFormat) -> NDArray[np.uint8]:
    """The cache as an array, or the error that says what is wrong with it."""
    blocks = as_array(cache, "cache")
    if blocks.dtype != np.uint8:
        raise TypeError(f"cache has dtype {blocks.dtype}; a cache is uint8")
    if blocks.ndim != 4 or blocks.shape[-1] != fmt.slot_bytes or blocks.shape[2] < 1:
        raise ValueError(
            f"cache has shape {blocks.shape}; it must be [blocks, H, block_size, {fmt.slot_bytes}] for this format"
        )
    if blocks.strides[-1] != 1:
        raise ValueError(f"cache has a last stride of {blocks.strides[-1]}; it must be 1")
    return blocks


def _checked_slots(slot_mapping: Any, tokens: int, blocks: NDArray[np.uint8]) -> NDArray[np.int64]:
    slots = as_array(slot_mapping, "slot_mapping")
    if slots.dtype not in (np.int32, np.int64):
        raise TypeError(f"slot_mapping has dtype {slots.dtype}; it must be int32 or int64")
    if slots.shape != (tokens,):
        raise ValueError(f"slot_mapping has shape {slots.shape}; it must be [{tokens}], one slot for each token of key")
    limit = blocks.shape[0] * blocks.shape[2]
    if slots.size and slots.max() >= min(limit, _MOST_SLOTS):
        at = int(slots.argmax())
        rule = "a slot number is an int32" if slots[at] >= _MOST_SLOTS else f"the cache has slots 0 to {limit - 1}"
        raise ValueError(f"slot_mapping holds {slots[at]} for token {at}; {rule}, and a negative one writes nothing")
    return slots.astype(np.int64, copy=False)
