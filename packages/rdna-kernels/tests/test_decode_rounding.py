"""Steep ALiBi slopes cost no more digits than float32 arithmetic does: biases are counted from keys near the token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problem import Problem, make_problem
from rdna_kernels import Executor

Array = np.ndarray[Any, Any]

# The error of an output is that of its scores times how far the values lie from it: so many units in the last place of
# a score of 1 are allowed. Plain float32 in NumPy took 4.3; biases counted from a tile's first key took 9.9 and 16.3.
UNITS = 8
SHAPES = [
    {"head_size": 64, "gqa": 4, "num_kv_heads": 4, "max_query_len": 4},
    {"head_size": 256, "gqa": 4, "num_kv_heads": 2, "max_query_len": 2},
]


def in_float32(problem: Problem) -> tuple[Array, Array]:
    """One sequence's outputs in plain float32, and the mean distance of the values from each, both as float64."""
    q, slopes = problem.q.astype(np.float32), problem.alibi_slopes
    assert slopes is not None
    size, page_size = q.shape[2], problem.kv_cache.shape[2]
    length = int(problem.seq_lens[0])
    positions = np.arange(length)
    rows = problem.kv_cache[problem.block_table[0, positions // page_size], :, positions % page_size].astype(np.float32)
    out, spread = np.zeros(q.shape), np.zeros(q.shape)
    for token, head in np.ndindex(q.shape[:2]):
        last = length - len(q) + token
        keys, values = np.split(rows[: last + 1, head * rows.shape[1] // q.shape[1]], 2, axis=1)
        scores = np.float32(size**-0.5) * (keys @ q[token, head]) + slopes[head] * np.arange(-last, 1, dtype=np.float32)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        assert weights.dtype == np.float32
        out[token, head] = weights @ values
        spread[token, head] = weights @ np.abs(values - out[token, head])
    return out, spread


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"h{shape['head_size']}")
def test_steep_slopes(executor: Executor, shape: dict[str, Any]) -> None:
    seen = 0
    for seed in range(12):
        problem = make_problem([21 + 5 * seed], **shape, alibi=True, seed=seed)
        assert problem.alibi_slopes is not None
        problem.alibi_slopes[:] = 0.5**0.5
        got, exact = problem.run(executor).astype(np.float64), problem.exact()
        plain, spread = in_float32(problem)
        # Outputs near 0 show the error: fp16 rounds them by less.
        small = (np.abs(exact) < 2.0**-9) & (spread > 0.05)
        rounding = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-14))) - 11)
        allowed = UNITS * 2.0**-24 * spread
        assert (np.abs(plain - exact) <= allowed)[small].all()
        assert (np.abs(got - exact) <= allowed + rounding)[small].all()
        seen += int(small.sum())
    assert seen > 50
