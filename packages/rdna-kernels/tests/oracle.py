"""Attention in float64, straight from its definition, over the same rounded inputs that a kernel reads."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3}
"""Largest relative error that a kernel may have, by the dtype of its output."""


def reference(
    q: Array,
    kv_cache: Array,
    block_table: Array,
    seq_lens: Array,
    *,
    max_query_len: int = 1,
    scale: float | None = None,
    window: int = 0,
) -> Array:
    """The exact result of a decode call, float64 `[num_seqs * max_query_len, num_q_heads, head_size]`.

    One query token and kv head at a time: gather the keys that the token sees, softmax, weigh the values.
    """
    num_q_heads, head_size = q.shape[1:]
    num_kv_heads, page_size = kv_cache.shape[1:3]
    group = num_q_heads // num_kv_heads
    factor = head_size**-0.5 if scale is None else scale
    result = np.zeros(q.shape, np.float64)
    for sequence, length in enumerate(int(value) for value in seq_lens):
        positions = np.arange(length)
        rows = kv_cache[block_table[sequence, positions // page_size], :, positions % page_size].astype(np.float64)
        for token in range(max_query_len):
            position = length - max_query_len + token
            if position < 0:
                continue
            first = max(0, position - window + 1) if window else 0
            row = sequence * max_query_len + token
            for kv_head in range(num_kv_heads):
                keys, values = np.split(rows[first : position + 1, kv_head], 2, axis=1)
                heads = slice(kv_head * group, (kv_head + 1) * group)
                scores = factor * (q[row, heads].astype(np.float64) @ keys.T)
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
                result[row, heads] = (weights / weights.sum(axis=1, keepdims=True)) @ values
    return result


def relative_error(got: Array, wanted: Array) -> float:
    """The largest |got - wanted| / max(|wanted|, 1e-3); infinite when anything is not finite."""
    exact = got.astype(np.float64)
    if not np.isfinite(exact).all():
        return float("inf")
    return float(np.max(np.abs(exact - wanted) / np.maximum(np.abs(wanted), 1e-3), initial=0.0))
