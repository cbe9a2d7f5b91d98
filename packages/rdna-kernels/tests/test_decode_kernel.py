"""What the machine code must not do wrong whatever surrounds its inputs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from guarded_memory import at_end_of_mapping, sparse_zeros
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import relative_error
from problem import DTYPES, Problem, make_problem, nan_filled
from rdna_kernels import EmulatedExecutor, Executor, LaunchRecord, decode_attention
from rdna_kernels.decode_values import MAX_SEQ_LEN
from rdna_registry import DEFAULT_TARGET, SERVED_HEAD_SIZES, load
from verdict import at_far_pages, entry_of, fault_of, make_scratch


def assert_right(problem: Problem, executor: Executor, **options: Any) -> None:
    assert problem.error(executor, **options) <= problem.tolerance


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(0, 260), min_size=1, max_size=3),
    head_size=st.sampled_from(SERVED_HEAD_SIZES),
    gqa=st.integers(1, 32),
    num_kv_heads=st.integers(1, 2),
    max_query_len=st.integers(1, 8),
    pages=st.integers(1, 7),
    window=st.one_of(st.just(0), st.integers(1, 300)),
    dtype=st.sampled_from(sorted(DTYPES)),
    layout=st.sampled_from(["HND", "NHD"]),
    scale=st.one_of(st.none(), st.floats(-0.1, 0.1)),  # steeper ones magnify fp32's rounding of the scores
    seed=st.integers(0, 2**16),
)
def test_any_shape(executor: Executor, lengths: list[int], pages: int, **shape: Any) -> None:
    assert_right(make_problem(lengths, page_size=16 * pages, **shape), executor)


@pytest.mark.parametrize("page_size", [16, 32, 64, 480, 528, 544, 784, 864, 1056, 1568])
@pytest.mark.parametrize("head_size", SERVED_HEAD_SIZES)
def test_pages(executor: Executor, head_size: int, page_size: int) -> None:
    """A page more or less than full, and a second one; pages of the models that people run."""
    lengths = [page_size - 1, 0, page_size, page_size + 1]
    shape: dict[str, Any] = {"head_size": head_size, "page_size": page_size, "num_kv_heads": 1, "seed": page_size}
    assert_right(make_problem(lengths, gqa=3, max_query_len=2, **shape), executor)
    assert_right(make_problem([2 * page_size + 5], gqa=5, window=page_size + 2, dtype="bfloat16", **shape), executor)


@pytest.mark.parametrize("gqa", [*range(1, 17), 32])
def test_group_sizes(executor: Executor, gqa: int) -> None:
    for head_size, max_query_len in zip(SERVED_HEAD_SIZES, itertools.cycle(range(1, 9)), strict=False):
        shape: dict[str, Any] = {"head_size": head_size, "max_query_len": (max_query_len + gqa) % 8 + 1}
        assert_right(make_problem([130, 9], gqa=gqa, num_kv_heads=1, window=100 * (gqa % 2), **shape), executor)


@pytest.mark.parametrize("scale", [0.0, 1.4e-45, -1e-40, 1e-38, 1e-30, 2.0**-80, -(2.0**-79), 1e-12, -0.1])
def test_scales_down_to_nothing(executor: Executor, scale: float) -> None:
    assert_right(make_problem([40], gqa=3, max_query_len=2, scale=scale), executor)


@pytest.mark.parametrize("garbage", ["key", "value", "both"])
@pytest.mark.parametrize("window", [0, 5, 64])
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_garbage_that_no_token_sees_changes_nothing(executor: Executor, garbage: str, window: int, dtype: str) -> None:
    shape: dict[str, Any] = {"page_size": 48, "max_query_len": 3, "window": window, "dtype": dtype, "seed": 5}
    clean = make_problem([130, 49, 1], garbage=garbage, **shape)
    wanted = clean.exact()
    clean.kv_cache[np.isnan(clean.kv_cache.astype(np.float32))] = 0
    dirty = make_problem([130, 49, 1], garbage=garbage, **shape)
    got, exact = dirty.run(executor), clean.run(executor)
    np.testing.assert_array_equal(got.view(np.uint16), exact.view(np.uint16))
    assert relative_error(got, wanted) <= dirty.tolerance


@pytest.mark.parametrize("lengths", [[300], [33, 1, 16, 129]])
def test_block_table_that_ends_at_the_end_of_memory(executor: Executor, lengths: list[int]) -> None:
    problem = make_problem(lengths, extra_columns=0)
    problem.block_table = at_end_of_mapping(problem.block_table)
    assert problem.block_table.shape[1] == -(-max(lengths) // 16)
    assert_right(problem, executor)


@pytest.mark.parametrize("lengths", [[40], [40, 7]])
def test_arrays_that_end_at_the_end_of_memory(executor: Executor, lengths: list[int]) -> None:
    problem = make_problem(lengths, gqa=3, max_query_len=2)
    for name in ("q", "kv_cache", "seq_lens"):
        setattr(problem, name, at_end_of_mapping(getattr(problem, name)))
    out = at_end_of_mapping(nan_filled(problem.q.shape, problem.q.dtype))
    assert_right(problem, executor, out=out)


@pytest.mark.parametrize(
    ("head_size", "num_kv_heads", "page_size"),
    [(64, 1, 16), (64, 1, 1568), (128, 1, 16), (128, 1, 1568), (80, 3, 48), (256, 4, 1568), (512, 2, 864)],
)
def test_block_ids_past_32_bits_of_offset(
    executor: Executor, head_size: int, num_kv_heads: int, page_size: int
) -> None:
    problem = make_problem([page_size + 9], page_size=page_size, head_size=head_size, num_kv_heads=num_kv_heads)
    exact = problem.exact()
    assert fault_of(at_far_pages(problem), exact, executor) is None


@pytest.mark.parametrize("name", ["q", "kv_cache", "out"])
@pytest.mark.parametrize("axis", [0, 1])
def test_strides_past_32_bits(executor: Executor, name: str, axis: int) -> None:
    """Tokens of q and out, pages of the cache (axis 0), or heads (axis 1) that are more than 2^31 elements apart."""
    problem = make_problem([40, 17], max_query_len=2, gqa=3)
    wanted = problem.run(executor)
    dense = nan_filled(problem.q.shape, problem.q.dtype) if name == "out" else getattr(problem, name)
    outer = dense.shape[axis]
    others = [size for index, size in enumerate(dense.shape) if index != axis]
    apart = -(-(2**31 + 2**10) // math.prod(others)) * math.prod(others)
    far = sparse_zeros([outer * apart], dense.dtype).reshape(outer, -1)[:, : math.prod(others)]
    view = np.moveaxis(far.reshape(outer, *others), 0, axis)
    assert view.strides[axis] // 2 > 2**31
    view[...] = dense
    if name == "out":
        got = problem.run(executor, out=view)
    else:
        setattr(problem, name, view)
        got = problem.run(executor)
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))


@pytest.mark.parametrize("page_size", [48, 1568, 4096])
@pytest.mark.parametrize("head_size", [64, 256])
def test_the_longest_sequences(executor: Executor, head_size: int, page_size: int) -> None:
    """A window at the end of 2^30 keys, of which all before it have no page: it is that of a short sequence."""
    window = 500
    short = make_problem([600], head_size=head_size, page_size=page_size, window=window, max_query_len=3)
    exact = short.exact()
    pages_before = (MAX_SEQ_LEN - 600) // page_size
    table = sparse_zeros([1, pages_before + short.block_table.shape[1]], np.int32)
    table[:, pages_before:] = short.block_table
    length = np.array([pages_before * page_size + 600], np.int32)
    long = Problem(short.q, short.kv_cache, table, length, short.max_query_len, window)
    assert fault_of(long, exact, executor) is None


def test_views_with_gaps_give_the_bits_of_dense_arrays(executor: Executor) -> None:
    problem = make_problem([300, 20], gqa=3, max_query_len=2, page_size=32)
    wanted = problem.run(executor)
    fused = nan_filled((4, 20, 64), np.float16)  # q and out in one array, a head of each in turn
    fused[:, 4:10] = problem.q
    cache = nan_filled((2 * len(problem.kv_cache), 2, 5, 32, 160), np.float16)[::2, 1, 1:3, :, 16:144]
    cache[...] = problem.kv_cache
    table = np.full((2, 40), -1, np.int32)[:, 3 : 3 + problem.block_table.shape[1]]
    table[...] = problem.block_table
    problem.q, problem.kv_cache, problem.block_table = fused[:, 4:10], cache, table
    got = problem.run(executor, out=fused[:, 12:18])
    assert got.base is fused
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))
    assert np.isnan(fused[:, :4]).all()
    assert np.isnan(fused[:, 10:12]).all()
    assert np.isnan(fused[:, 18:]).all()


def test_a_kernel_from_the_registry_is_this_operator(executor: Executor) -> None:
    problem = make_problem([300, 20], gqa=3, max_query_len=2, window=100)
    kernel = load(entry_of(problem, executor.target))
    assert kernel is not None
    got = kernel(problem.q, problem.kv_cache, problem.block_table, problem.seq_lens, executor=executor)
    np.testing.assert_array_equal(got.view(np.uint16), problem.run(executor).view(np.uint16))


def test_a_batchs_rows_are_those_of_its_sequences_alone(executor: Executor) -> None:
    batch = make_problem([1100, 3, 0, 64, 65, 300], gqa=4, max_query_len=2, page_size=32)
    together = batch.run(executor, variant=entry_of(batch))
    for index, length in enumerate(batch.seq_lens):
        rows = slice(2 * index, 2 * index + 2)
        alone = decode_attention(
            batch.q[rows],
            batch.kv_cache,
            batch.block_table[index : index + 1],
            batch.seq_lens[index : index + 1],
            max_query_len=2,
            variant=entry_of(batch),
            executor=executor,
        )
        np.testing.assert_array_equal(together[rows].view(np.uint16), alone.view(np.uint16), err_msg=f"S = {length}")


@pytest.mark.parametrize("window", [0, 4])
@pytest.mark.parametrize("lengths", [[0], [0, 0, 0], [5, 0, 2]])
def test_rows_before_the_first_token_are_zero(executor: Executor, lengths: list[int], window: int) -> None:
    problem = make_problem(lengths, max_query_len=4, window=window, garbage="both")
    got = problem.run(executor)
    for index, length in enumerate(lengths):
        rows = got[4 * index : 4 * index + 4]
        assert not rows[: max(4 - length, 0)].any()
        assert rows[max(4 - length, 0) :].all(axis=-1).all()
    assert relative_error(got, problem.exact()) <= problem.tolerance


def test_an_empty_cache_serves_empty_sequences(executor: Executor) -> None:
    q = np.ones((2, 4, 64), np.float16)
    cache, table = np.empty((0, 2, 16, 128), np.float16), np.empty((2, 0), np.int32)
    out = decode_attention(q, cache, table, np.zeros(2, np.int32), out=nan_filled(q.shape, q.dtype), executor=executor)
    assert not out.any()


def test_a_window_larger_than_any_length_is_none(executor: Executor) -> None:
    problem = make_problem([70, 3], max_query_len=2)
    wanted = problem.run(executor)
    problem.window = 2**31 - 1
    np.testing.assert_array_equal(problem.run(executor).view(np.uint16), wanted.view(np.uint16))


@pytest.mark.parametrize("head_size", [64, 128])
def test_one_scratch_serves_all_lengths_and_is_left_clean(executor: Executor, head_size: int) -> None:
    longest = make_problem([2100, 900], head_size=head_size)
    scratch = make_scratch(longest)
    for lengths in ([2100, 900], [17, 2100], [0, 1], [900, 899], [2100, 2100]):
        assert_right(make_problem(lengths, head_size=head_size), executor, scratch=scratch)
        assert not scratch[3].any()
    assert np.isfinite(scratch[2]).any(), "no length was long enough to be split"


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_large_scores_neither_overflow_nor_lose_the_largest(executor: Executor, dtype: str) -> None:
    problem = make_problem([200], dtype=dtype, gqa=2)
    problem.q *= 12
    problem.kv_cache[:, :, :, :64] *= 12
    assert_right(problem, executor)


def test_keys_in_another_order_of_pages_give_the_same_result(executor: Executor) -> None:
    one, other = make_problem([300], seed=1), make_problem([300], seed=1)
    order = np.random.default_rng(7).permutation(len(one.kv_cache)).astype(np.int32)
    other.kv_cache = one.kv_cache[np.argsort(order)]
    other.block_table[0, :19] = order[one.block_table[0, :19]]
    np.testing.assert_array_equal(one.run(executor).view(np.uint16), other.run(executor).view(np.uint16))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_workgroups_does_not_matter(target: str, executor: Executor, seed: int) -> None:
    problem = make_problem([1100, 2, 700], gqa=4, max_query_len=2)
    shuffled = EmulatedExecutor(target, checks="all", schedule="random", seed=seed)
    got, wanted = problem.run(shuffled), problem.run(executor)
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))
    assert_right(problem, shuffled, scratch=make_scratch(problem))


@pytest.mark.parametrize("head_size", [64, 128])
@pytest.mark.parametrize("layout", ["HND", "NHD"])
def test_memory_is_touched_once(target: str, head_size: int, layout: str) -> None:
    """Distinct 128-byte lines of q, the valid KV, out and the table, against the bytes of these."""
    problem = make_problem([1100], head_size=head_size, gqa=4, num_kv_heads=2, layout=layout)
    records: list[LaunchRecord] = []
    problem.run(EmulatedExecutor(target), report=records)
    lines = records[0].counts["unique_lines_by_argument"]
    touched = 128 * sum(lines[name] for name in ("q", "kv_cache", "out", "block_table"))
    needed = 2 * problem.q.nbytes + 1100 * 2 * 2 * head_size * 2 + 4 * 69
    assert needed <= touched <= 1.03 * needed
    assert set(lines) >= {"seq_lens", "partials", "counters"}
