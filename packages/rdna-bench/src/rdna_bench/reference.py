"""Paged decode attention in plain NumPy float64: the oracle that measured outputs are compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Largest accepted ``relative_error`` of a 16-bit attention output, by dtype name.
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3}


def reference_attention(
    q: NDArray[Any],
    kv_cache: NDArray[Any],
    block_table: NDArray[np.int32],
    seq_lens: NDArray[np.int32],
    max_query_len: int = 1,
    scale: float | None = None,
    window: int = 0,
) -> NDArray[np.float64]:
    """Softmax attention of the last ``max_query_len`` tokens of every sequence over its paged keys.

    Token ``t`` of a sequence of ``S`` tokens stands at position ``p = S - max_query_len + t`` and sees the keys
    ``max(0, p - window + 1) .. p`` (``0 .. p`` when ``window`` is 0). A token with ``p < 0`` gives a row of zeros.
    Keys that no token sees are never read, so they may hold anything.

    Args:
        q: ``[num_seqs * max_query_len, num_q_heads, head_size]``, sequence by sequence, any float dtype.
        kv_cache: ``[num_pages, num_kv_heads, page_size, 2 * head_size]``, K then V in each row.
        block_table: ``[num_seqs, columns]`` page of each run of ``page_size`` tokens; later entries may be anything.
        seq_lens: ``[num_seqs]`` tokens of each sequence, the new ones included.
        max_query_len: query tokens of every sequence.
        scale: factor of the scores, ``1 / sqrt(head_size)`` by default.
        window: keys that a token sees, itself included; 0 means all.

    Returns:
        float64 array of the shape of ``q``.
    """
    _, num_q_heads, head_size = q.shape
    _, num_kv_heads, page_size, _ = kv_cache.shape
    gqa = num_q_heads // num_kv_heads
    scale = 1.0 / math.sqrt(head_size) if scale is None else scale
    out = np.zeros(q.shape, np.float64)
    for seq, length in enumerate(int(s) for s in seq_lens):
        query_tokens = np.arange(max(0, max_query_len - length), max_query_len)
        if len(query_tokens) == 0:
            continue
        positions = length - max_query_len + query_tokens
        first_key = max(0, int(positions[0]) - window + 1) if window else 0
        keys = np.arange(first_key, length)
        rows = kv_cache[block_table[seq, keys // page_size], :, keys % page_size].astype(np.float64)
        k, v = rows[..., :head_size], rows[..., head_size:]  # [keys, num_kv_heads, head_size]

        queries = q[seq * max_query_len + query_tokens].astype(np.float64)
        queries = queries.reshape(len(query_tokens), num_kv_heads, gqa, head_size).transpose(1, 2, 0, 3)
        scores = scale * (queries @ k.transpose(1, 2, 0)[:, None])  # [num_kv_heads, gqa, tokens, keys]
        hidden = keys > positions[:, None]
        if window:
            hidden |= keys <= positions[:, None] - window
        scores[..., hidden] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        result = weights @ v.transpose(1, 0, 2)[:, None]
        out[seq * max_query_len + query_tokens] = result.transpose(2, 0, 1, 3).reshape(
            len(query_tokens), num_q_heads, head_size
        )
    return out


def numpy_attention(
    q: NDArray[Any],
    kv_cache: NDArray[Any],
    block_table: NDArray[np.int32],
    seq_lens: NDArray[np.int32],
    max_query_len: int,
) -> NDArray[Any]:
    """``reference_attention`` rounded to the dtype of ``q``."""
    return reference_attention(q, kv_cache, block_table, seq_lens, max_query_len).astype(q.dtype)


def relative_error(got: NDArray[Any], reference: NDArray[np.float64]) -> float:
    """Largest ``|got - reference| / max(|reference|, 1e-3)``; NaN in ``got`` counts as infinite."""
    if got.shape != reference.shape:
        raise ValueError(f"shapes differ: {got.shape} against the reference's {reference.shape}")
    if got.size == 0:
        return 0.0
    error = np.abs(got.astype(np.float64) - reference) / np.maximum(np.abs(reference), 1e-3)
    return float(np.nan_to_num(error, nan=np.inf).max())
