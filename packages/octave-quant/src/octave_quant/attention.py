"""Attention over a paged cache of slots: the reference that kernels are compared with."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octave_quant.cache import checked_cache
from octave_quant.formats import OctaveFormat
from octave_quant.quantization import check_format, dequantize
from octave_quant.rows import as_array, as_rows, like, widened

_MOST = float(np.finfo(np.float32).max)


def paged_attention(
    query: Any, cache: Any, block_table: Any, q_to_req: Any, q_to_klen: Any, fmt: OctaveFormat, scale: float
) -> Any:
    """Softmax attention of each query row over the first keys of its request, fp32 ``[Q, num_q_heads, head_size]``.

    query: ``[Q, num_q_heads, head_size]``, fp32, fp16 or bfloat16; the result is of its kind.
    cache: uint8 ``[blocks, num_kv_heads, block_size, slot_bytes]``; num_q_heads is a multiple of num_kv_heads.
    block_table: int32 or int64 ``[requests, columns]``; entries past a request's last needed one may be anything.
    q_to_req: ``[Q]``, the request of each row. A row whose request does not exist (padding) is zero.
    q_to_klen: ``[Q]``, how many keys the row sees; none give zeros.
    scale: what scores are multiplied by.

    ValueError for shapes and values, TypeError for dtypes and kinds.
    """
    check_format(fmt)
    rows, blocks = as_rows(query, "query"), checked_cache(cache, fmt)
    q = rows.values
    if q.ndim != 3 or q.shape[-1] != fmt.head_size:
        raise ValueError(f"query has shape {q.shape}; it must be [Q, num_q_heads, {fmt.head_size}] for this format")
    num_kv_heads, block_size = blocks.shape[1], blocks.shape[2]
    if num_kv_heads < 1 or q.shape[1] % num_kv_heads:
        raise ValueError(f"query has {q.shape[1]} heads, no multiple of the cache's {num_kv_heads} KV heads")
    factor = _finite(scale)
    table = _integers(block_table, "block_table", 2, None)
    requests = _integers(q_to_req, "q_to_req", 1, q.shape[0])
    lengths = _integers(q_to_klen, "q_to_klen", 1, q.shape[0])
    exists = (requests >= 0) & (requests < table.shape[0])
    if (lengths[exists] < 0).any():
        raise ValueError(f"q_to_klen holds {lengths[exists].min()}; a number of keys is 0 or more")
    out = np.zeros(q.shape, np.float32)
    gqa = q.shape[1] // num_kv_heads
    for request in np.unique(requests[exists]):
        members = np.flatnonzero(requests == request)
        longest = int(lengths[members].max())
        k, v = _keys(blocks, table, int(request), longest, block_size, fmt)
        for row in members:
            length = int(lengths[row])
            if not length:
                continue
            grouped = widened(rows, slice(row, row + 1)).reshape(num_kv_heads, gqa, fmt.head_size)
            # NaN and Inf of the query, or of a cache that another program wrote, go into the result as they are.
            with np.errstate(invalid="ignore", over="ignore"):
                out[row] = _attend(grouped, k[:length], v[:length], factor).reshape(q.shape[1:])
    return like(out, query)


def _keys(
    blocks: NDArray[np.uint8], table: NDArray[np.int64], request: int, length: int, block_size: int, fmt: OctaveFormat
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    needed = -(-length // block_size)
    if needed > table.shape[1]:
        raise ValueError(
            f"block_table has {table.shape[1]} columns; request {request} has {length} keys and needs {needed}"
        )
    numbers = table[request, :needed]
    if needed and (numbers.min() < 0 or numbers.max() >= blocks.shape[0]):
        wrong = numbers[(numbers < 0) | (numbers >= blocks.shape[0])][0]
        raise ValueError(
            f"block_table holds {wrong} for request {request}; the cache has blocks 0 to {blocks.shape[0] - 1}"
        )
    slots = blocks[numbers].transpose(0, 2, 1, 3).reshape(-1, blocks.shape[1], fmt.slot_bytes)[:length]
    k, v = dequantize(slots, fmt)
    return k, v


def _attend(
    q: NDArray[np.float32], k: NDArray[np.float32], v: NDArray[np.float32], factor: np.float32
) -> NDArray[np.float32]:
    """``[num_kv_heads, gqa, head_size]`` of q so and of keys and values ``[length, num_kv_heads, head_size]``."""
    scores = np.einsum("hgd,thd->hgt", q, k) * factor
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    result: NDArray[np.float32] = np.einsum("hgt,thd->hgd", weights, v)
    return result


def _finite(scale: float) -> np.float32:
    number = isinstance(scale, (int, float, np.floating, np.integer)) and not isinstance(scale, bool)
    if number and abs(scale) <= _MOST:
        return np.float32(scale)
    raise ValueError(f"scale is {reprlib.repr(scale)}; it must be a finite number in fp32")


def _integers(x: Any, name: str, ndim: int, length: int | None) -> NDArray[np.int64]:
    values = as_array(x, name)
    if values.dtype not in (np.int32, np.int64):
        raise TypeError(f"{name} has dtype {values.dtype}; it must be int32 or int64")
    if values.ndim != ndim or (length is not None and values.shape[0] != length):
        expected = "[requests, columns]" if length is None else f"[{length}], one for each row of query"
        raise ValueError(f"{name} has shape {values.shape}; it must be {expected}")
    return values.astype(np.int64, copy=False)
