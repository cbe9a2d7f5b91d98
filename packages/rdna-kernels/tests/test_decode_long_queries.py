"""Queries of 9 to 127 tokens: the lengths between decode and prefill."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem import DTYPES, make_problem
from rdna_kernels import Executor, LaunchRecord
from rdna_registry import DEFAULT_TARGET, MAX_QUERY_LEN, SERVED_HEAD_SIZES
from verdict import entry_of, fault_of


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(0, 200), min_size=1, max_size=2),
    head_size=st.sampled_from(SERVED_HEAD_SIZES),
    gqa=st.integers(1, 8),
    max_query_len=st.integers(9, MAX_QUERY_LEN),
    pages=st.integers(1, 4),
    window=st.one_of(st.just(0), st.integers(1, 150)),
    dtype=st.sampled_from(sorted(DTYPES)),
    seed=st.integers(0, 2**16),
)
def test_any_long_query(executor: Executor, lengths: list[int], pages: int, **shape: Any) -> None:
    problem = make_problem(lengths, page_size=16 * pages, num_kv_heads=1, **shape)
    assert fault_of(problem, problem.exact(), executor) is None


@pytest.mark.parametrize("head_size", SERVED_HEAD_SIZES)
@pytest.mark.parametrize(("max_query_len", "gqa"), [(9, 1), (16, 2), (17, 1), (64, 3), (127, 1), (127, 5), (9, 32)])
def test_long_queries(executor: Executor, head_size: int, max_query_len: int, gqa: int) -> None:
    for lengths in ([max_query_len + 30], [5, 0, 140]):
        problem = make_problem(
            lengths, head_size=head_size, gqa=gqa, num_kv_heads=2, max_query_len=max_query_len, page_size=48
        )
        assert fault_of(problem, problem.exact(), executor) is None, lengths


@pytest.mark.parametrize("head_size", [64, 128])
def test_queries_share_reads_of_keys_and_values(executor: Executor, head_size: int) -> None:
    problem = make_problem([512], head_size=head_size, gqa=2, num_kv_heads=1, max_query_len=64, page_size=64)
    entry = dataclasses.replace(entry_of(problem, executor.target), max_segments=1)
    assert (entry.row_groups, entry.rows_padded) == (4, 32)
    records: list[LaunchRecord] = []
    problem.run(executor, variant=entry, report=records)
    cache_bytes = 512 * 2 * head_size * 2
    assert records[0].counts["global_bytes_requested"] <= 1.2 * entry.row_groups * cache_bytes
