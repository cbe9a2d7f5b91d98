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
    sinks: Array | None = None,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
) -> tuple[Array, Array]:
    """The exact results of a decode call: float64 out `[num_seqs * max_query_len, num_q_heads, head_size]`, and lse.

    One query token and kv head at a time: gather the keys that the token sees, softmax, weigh the values.
    """
    num_q_heads, head_size = q.shape[1:]
    num_kv_heads, page_size = kv_cache.shape[1:3]
    group = num_q_heads // num_kv_heads
    factor = head_size**-0.5 if scale is None else scale
    result, lse = np.zeros(q.shape, np.float64), np.full(q.shape[:2], -np.inf)
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
                if softcap:
                    scores = softcap * np.tanh(scores / softcap)
                if alibi_slopes is not None:
                    distance = np.arange(first, position + 1) - position
                    scores += alibi_slopes[heads].astype(np.float64)[:, None] * distance
                logits = scores if sinks is None else np.column_stack([scores, sinks[heads].astype(np.float64)])
                top = logits.max(axis=1, keepdims=True)
                total = np.exp(logits - top).sum(axis=1, keepdims=True)
                result[row, heads] = (np.exp(scores - top) / total) @ values
                lse[row, heads] = (top + np.log(total))[:, 0]
    return result, lse


def relative_error(got: Array, wanted: Array) -> float:
    """The largest |got - wanted| / max(|wanted|, 1e-3); infinite when anything is not finite."""
    exact = got.astype(np.float64)
    if not np.isfinite(exact).all():
        return float("inf")
    return float(np.max(np.abs(exact - wanted) / np.maximum(np.abs(wanted), 1e-3), initial=0.0))
