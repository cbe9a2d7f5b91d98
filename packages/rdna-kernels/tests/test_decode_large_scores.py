"""Scores just below `LARGEST_SCORE`: up to it outputs are finite means of the values, with weights of known error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import relative_error
from problem import make_problem
from rdna_kernels import Executor, decode_attention
from rdna_kernels.decode_values import LARGEST_SCORE, WEIGHT_ERROR

SHAPES: list[dict[str, Any]] = [
    {"lengths": [100, 17]},
    {"lengths": [1500], "num_kv_heads": 1, "max_query_len": 2},
    {"lengths": [90], "head_size": 128, "gqa": 9, "max_query_len": 3},
    {"lengths": [200], "head_size": 256, "window": 60},
    {"lengths": [300], "head_size": 80, "alibi": True},
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_output_is_a_mean_of_values(executor: Executor, shape: dict[str, Any], dtype: str) -> None:
    """Whole tiles of keys have scores of one sign, so that a wave's reference moves by twice the largest score."""
    problem = make_problem(**shape, dtype=dtype, garbage="value", seed=1)
    size = problem.q.shape[-1]
    random = np.random.default_rng(1)
    keys, values = problem.kv_cache[..., :size], problem.kv_cache[..., size:]
    problem.q[...] = random.uniform(100, 200, problem.q.shape)
    signs = random.choice([-1, 1], (len(keys), 1, 1, 1))
    keys[...] = signs * random.uniform(100, 200, keys.shape)
    values[...] = random.uniform(0, 1, values.shape)
    values[..., 0] = 1
    bias = 0.0
    if problem.alibi_slopes is not None:
        problem.alibi_slopes[...] = np.float32(1e3)
        bias = 1e3 * int(problem.seq_lens.max())
    most = np.abs(problem.q.astype(float)).max() * np.abs(keys.astype(float)).max() * size
    problem.scale = (0.999 * LARGEST_SCORE - bias) / most
    got = problem.run(executor)
    assert got[..., 0].astype(float) == pytest.approx(1, abs=0.01)
    assert (got >= 0).all()
    # Here one key has a row's whole weight: what comes next is far below, even with the scores' error.
    assert relative_error(got, problem.exact()) <= problem.tolerance


@pytest.mark.parametrize("head_size", [64, 128, 256, 512])
def test_the_error_of_weights(executor: Executor, head_size: int) -> None:
    """Keys whose scores differ by little, and each key's value another dimension: the output is the weights."""
    random = np.random.default_rng(head_size)
    size = (0.9 * LARGEST_SCORE / head_size) ** 0.5
    q = random.uniform(0.9 * size, size, (1, 4, head_size)).astype(np.float16)
    cache = np.zeros((head_size // 16, 1, 16, 2 * head_size), np.float16)
    cache[..., :head_size] = random.uniform(0.9 * size, size, head_size)
    q[..., -1], cache[..., head_size - 1] = 1, random.uniform(-2, 2, cache.shape[:3])
    cache[..., head_size:] = np.eye(head_size).reshape(*cache.shape[:3], head_size)
    table, lengths = np.arange(len(cache), dtype=np.int32)[None], np.array([head_size], np.int32)
    weights = decode_attention(q, cache, table, lengths, scale=1.0, executor=executor)[0].astype(float)
    keys = cache[:, 0, :, :head_size].reshape(head_size, head_size).astype(float)
    scores = q[0].astype(float) @ keys.T
    exact = np.exp(scores - scores.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    assert weights.sum(axis=1) == pytest.approx(1, abs=0.01)
    assert scores.max() > 0.7 * LARGEST_SCORE
    # Twice: the weight's own score and that of those which share the sum with it.
    assert np.abs(np.log(weights / exact)).max() <= 2 * WEIGHT_ERROR * scores.max()


@pytest.mark.parametrize("length", [1, 2, 16, 18])
@pytest.mark.parametrize("slope", [30, 900])
def test_a_steep_slope_counts_as_a_score(executor: Executor, length: int, slope: float) -> None:
    """The newest key has no bias and all of the weight: lse is its score."""
    q, cache = np.ones((1, 1, 64), np.float16), np.ones((2, 1, 16, 128), np.float16)
    table, lengths = np.array([[0, 1]], np.int32), np.array([length], np.int32)
    slopes, lse = np.array([slope], np.float32), np.empty((1, 1), np.float32)
    decode_attention(q, cache, table, lengths, scale=0.1234, alibi_slopes=slopes, lse=lse, executor=executor)
    score = 64 * 0.1234
    assert lse[0, 0] == pytest.approx(score, abs=WEIGHT_ERROR * (score + slope))
