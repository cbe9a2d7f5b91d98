"""The float64 oracle against loops that follow the definition, and its power to notice faults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rdna_bench.reference import reference_attention, relative_error

HEAD = 8


def case(
    lengths: list[int], max_query_len: int, num_q_heads: int, num_kv_heads: int, page_size: int, seed: int = 0
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int32], NDArray[np.int32]]:
    """Random inputs on shuffled pages; unused slots and pages are NaN, unused table entries -1."""
    rng = np.random.default_rng(seed)
    columns = max(1, *(-(-length // page_size) for length in lengths)) + 1
    num_pages = len(lengths) * columns + 2
    cache = np.full((num_pages, num_kv_heads, page_size, 2 * HEAD), np.nan)
    table = np.full((len(lengths), columns), -1, np.int32)
    free = list(rng.permutation(num_pages))
    for seq, length in enumerate(lengths):
        for column in range(-(-length // page_size)):
            page = table[seq, column] = free.pop()
            used = min(page_size, length - column * page_size)
            cache[page, :, :used] = rng.standard_normal((num_kv_heads, used, 2 * HEAD))
    q = rng.standard_normal((len(lengths) * max_query_len, num_q_heads, HEAD))
    return q, cache, table, np.array(lengths, np.int32)


def by_definition(
    q: NDArray[Any],
    cache: NDArray[Any],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    max_query_len: int,
    window: int,
) -> NDArray[np.float64]:
    """One row at a time, one key at a time."""
    out = np.zeros(q.shape)
    gqa = q.shape[1] // cache.shape[1]
    page_size = cache.shape[2]
    for row in range(q.shape[0]):
        seq, token = divmod(row, max_query_len)
        position = int(lengths[seq]) - max_query_len + token
        first = max(0, position - window + 1) if window else 0
        for head in range(q.shape[1]):
            weights, values = [], []
            for key in range(first, position + 1):
                entry = cache[table[seq, key // page_size], head // gqa, key % page_size]
                weights.append(math.exp(float(q[row, head] @ entry[:HEAD]) / math.sqrt(HEAD)))
                values.append(entry[HEAD:])
            for weight, value in zip(weights, values, strict=True):
                out[row, head] += weight / sum(weights) * value
    return out


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    max_query_len=st.integers(1, 5),
    heads=st.sampled_from([(1, 1), (6, 2), (3, 3)]),
    page_size=st.sampled_from([1, 4, 16]),
    window=st.integers(0, 45),
    seed=st.integers(0, 1000),
)
def test_matches_the_definition(
    lengths: list[int], max_query_len: int, heads: tuple[int, int], page_size: int, window: int, seed: int
) -> None:
    inputs = case(lengths, max_query_len, *heads, page_size, seed)
    got = reference_attention(*inputs, max_query_len, window=window)
    np.testing.assert_allclose(got, by_definition(*inputs, max_query_len, window), rtol=1e-9, atol=1e-12)


def test_scale_multiplies_the_scores() -> None:
    q, cache, table, lengths = case([9], 1, 2, 1, 4)
    got = reference_attention(q, cache, table, lengths, scale=3.0)
    expected = reference_attention(q * 3.0 * math.sqrt(HEAD), cache, table, lengths)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_rows_before_the_first_token_are_zero() -> None:
    out = reference_attention(*case([2, 0], 4, 2, 1, 4), 4)
    assert not out[:2].any()
    assert out[2:4].all()
    assert not out[4:].any()


def test_large_scores_do_not_overflow() -> None:
    q, cache, table, lengths = case([5], 1, 1, 1, 4)
    assert np.isfinite(reference_attention(q * 1e6, cache, table, lengths)).all()


def test_pages_before_the_window_are_not_read() -> None:
    q, cache, table, lengths = case([40], 1, 2, 1, 4)
    expected = reference_attention(q, cache, table, lengths, window=6)
    cache[table[0, :8]] = np.nan
    table[0, :8] = -1
    np.testing.assert_array_equal(reference_attention(q, cache, table, lengths, window=6), expected)


@pytest.mark.parametrize("length", [17, 2048])
def test_one_key_too_many_is_noticed(length: int) -> None:
    q, cache, table, lengths = case([length], 1, 2, 1, 16)
    reference = reference_attention(q, cache, table, lengths)
    mutant = reference_attention(q, cache, table, lengths - 1)
    assert relative_error(mutant, reference) > 8e-3


def test_relative_error_counts_nan_as_infinite() -> None:
    reference = np.array([1.0, 0.0])
    assert relative_error(np.array([1.001, 0.0]), reference) == pytest.approx(1e-3)
    assert relative_error(np.array([1.0, 1e-6]), reference) == pytest.approx(1e-3)
    assert relative_error(np.array([np.nan, 0.0]), reference) > 1e300


def test_relative_error_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"shapes differ: \(2,\) against the reference's \(1,\)"):
        relative_error(np.zeros(2), np.zeros(1))
