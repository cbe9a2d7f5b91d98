from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdna_registry import (
    ArgumentError,
    KernelVariant,
    decode_plan_capacity,
    key_block,
    plan_decode,
    workgroups_per_row,
)

VARIANT = KernelVariant(128, 32, 8, 1, 16, 1, max_segments=4, min_segment_blocks=2, waves=4, batched=1)


@st.composite
def variants_of(draw: st.DrawFn) -> KernelVariant:
    kv_heads = draw(st.integers(1, 8))
    waves, split = draw(st.sampled_from([(1, 0), (4, 0), (8, 0), (4, 2), (8, 8)]))
    dot_product = draw(st.booleans()) and not split
    return KernelVariant(
        128,
        kv_heads * 4,
        kv_heads,
        4,
        16,
        1,
        row_groups=1 if dot_product else draw(st.integers(1, 4)),
        min_segment_blocks=draw(st.integers(1, 4)),
        waves=waves,
        head_dim_split=split,
        dot_product=int(dot_product),
    )


batches = st.lists(
    st.tuples(st.integers(0, 4), st.one_of(st.integers(0, 300), st.integers(0, 70_000))), min_size=1, max_size=40
)
windows = st.one_of(st.just(0), st.integers(1, 3000))
targets = st.integers(1, 400)


def needed_blocks(tokens: int, length: int, variant: KernelVariant, window: int) -> int:
    """Key blocks that a sequence of this exact length needs."""
    first_key = max(0, length - tokens - window + 1) if window else 0
    block = key_block(variant)
    return -(-length // block) - first_key // block


def check_plan(batch: list[tuple[int, int]], variant: KernelVariant, window: int, target: int) -> None:
    queries, lengths = [pair[0] for pair in batch], [pair[1] for pair in batch]
    plan = plan_decode(np.array(queries), np.array(lengths), variant, window, target)
    width = workgroups_per_row(variant)
    assert plan.dtype == np.int32
    assert plan.shape == (decode_plan_capacity(len(batch), variant, target), 4)
    rows = [tuple(row) for row in plan.tolist()]
    used = sum(row[0] >= 0 for row in rows)
    assert rows[used:] == [(-1, -1, -1, -1)] * (len(rows) - used)

    shares: dict[int, list[int]] = {}
    last_split = -1
    for number, (sequence, packed, first, blocks) in enumerate(rows[:used]):
        segment, segments = packed & 0xFFFF, packed >> 16
        listed = shares.setdefault(sequence, [])
        assert segment == len(listed) < segments
        assert segment == 0 or rows[number - 1][0] == sequence  # consecutive rows
        assert first == sum(listed)  # each block once
        listed.append(blocks)
        assert segments == packed_segments(rows, sequence)
        if segments > 1:
            last_split = number
    assert set(shares) == {sequence for sequence, tokens in enumerate(queries) if tokens}

    totals = {sequence: sum(blocks) for sequence, blocks in shares.items()}
    mean = sum(totals.values()) * width / target
    for sequence, blocks in shares.items():
        tokens, length = batch[sequence]
        covered = [
            needed_blocks(tokens, shorter, variant, window) for shorter in range(max(0, length - 200), length + 1)
        ]
        assert totals[sequence] >= max(covered)
        assert totals[sequence] <= -(-length // key_block(variant))
        assert max(blocks) - min(blocks) <= 1
        if len(blocks) > 1:
            assert min(blocks) >= variant.min_segment_blocks
        if (len(blocks) + 1) * variant.min_segment_blocks <= totals[sequence]:
            assert max(blocks) < mean + 1
    splits = [blocks for blocks in shares.values() if len(blocks) > 1]
    assert len(splits) * width < target
    assert sum(map(len, splits)) * width < 2 * target
    assert last_split + 1 == sum(map(len, splits))  # split sequences are at the front
    work = [sum(shares[row[0]]) for row in rows[:used]]
    assert work == sorted(work, reverse=True)


def packed_segments(rows: list[tuple[int, ...]], sequence: int) -> int:
    return sum(row[0] == sequence for row in rows)


@settings(deadline=None)
@given(batches, variants_of(), windows, targets)
def test_properties(batch: list[tuple[int, int]], variant: KernelVariant, window: int, target: int) -> None:
    check_plan(batch, variant, window, target)


@pytest.mark.parametrize(
    "batch",
    [
        [(1, 2**31 - 1)],
        [(1, 100_000), *[(1, 40)] * 500],
        [(1, 5000)] * 300,
        [(1, 5000)] * 8 + [(1, 0)] * 24,
        [(1, 0)] * 5,
        [(0, 100)] * 5,
        [(0, 100), (1, 100), (0, 0), (1, 0)],
    ],
    ids=["huge", "ragged", "uniform", "padded", "empty", "idle", "mixed"],
)
def test_batches(batch: list[tuple[int, int]]) -> None:
    for window in (0, 1, 1000):
        check_plan(batch, VARIANT, window, 80)


def test_one_sequence_takes_all_workgroups() -> None:
    plan = plan_decode([1], [6400], VARIANT, 0, 80)
    assert plan.tolist() == [[0, segment | 10 << 16, 10 * segment, 10] for segment in range(10)]


def test_a_sequence_without_keys_has_a_row() -> None:
    assert plan_decode([1, 1], [0, 64], VARIANT, 0, 8).tolist() == [[1, 1 << 16, 0, 1], [0, 1 << 16, 0, 0]]


def test_a_window_leaves_what_it_can_touch() -> None:
    # 129 keys touch 4 blocks of 64 at most, and 2 tokens see one key more than a token.
    for window, blocks in ((1, 1), (2, 2), (65, 2), (66, 3), (129, 3), (130, 4)):
        assert plan_decode([1], [9000], VARIANT, window, 8)[0].tolist() == [0, 1 << 16, 0, blocks]
    variant = dataclasses.replace(VARIANT, max_query_len=2)
    assert plan_decode([2], [9000], variant, 129, 8)[0].tolist() == [0, 1 << 16, 0, 4]


def test_the_capacity_depends_on_the_number_of_sequences_only() -> None:
    shapes = {plan_decode([1, 1, 1], [first, 50, 9], VARIANT, 0, 80).shape for first in (0, 10, 10_000, 10**8)}
    assert shapes == {(12, 4)}
    assert decode_plan_capacity(3, VARIANT, 80) == 12
    assert decode_plan_capacity(3, VARIANT, 8) == decode_plan_capacity(3, VARIANT, 1) == 3


def test_key_blocks_and_widths() -> None:
    assert key_block(VARIANT) == 64
    assert key_block(dataclasses.replace(VARIANT, head_dim_split=2)) == 32
    assert workgroups_per_row(VARIANT) == 8
    assert workgroups_per_row(dataclasses.replace(VARIANT, row_groups=2)) == 16
    assert workgroups_per_row(dataclasses.replace(VARIANT, dot_product=1)) == 8


def test_arrays_changed_in_place_are_planned_again() -> None:
    queries, lengths = np.array([1, 1], np.int32), np.array([700, 700], np.int32)
    before = plan_decode(queries, lengths, VARIANT, 0, 80)
    lengths[1] = 9000
    after = plan_decode(queries, lengths, VARIANT, 0, 80)
    assert after.tolist() == plan_decode([1, 1], [700, 9000], VARIANT, 0, 80).tolist() != before.tolist()
    queries[0] = 0
    assert plan_decode(queries, lengths, VARIANT, 0, 80)[:, 0].max() == 1
    assert 0 not in plan_decode(queries, lengths, VARIANT, 0, 80)[:, 0]


def test_a_plan_belongs_to_the_caller() -> None:
    wanted = plan_decode([1], [700], VARIANT, 0, 80).tolist()
    for _ in range(3):
        plan = plan_decode([1], [700], VARIANT, 0, 80)
        assert plan.tolist() == wanted
        plan[:] = -7


@pytest.mark.parametrize("dtype", ["int64", "uint16", ">i4"])
def test_other_integer_types(dtype: str) -> None:
    wanted = plan_decode([1, 1], [700, 70], VARIANT, 0, 80)
    got = plan_decode(np.array([1, 1], dtype), np.array([700, 70], dtype), VARIANT, 0, 80)
    np.testing.assert_array_equal(got, wanted)


BAD_ARRAYS: list[tuple[Any, Any, str, str]] = [
    ([2], [5], "query_lens", "2; allowed: 0 to 1, as the variant serves"),
    ([-1], [5], "query_lens", "-1; allowed: no negative length"),
    ([1], [-5], "seq_lens_upper_bound", "-5; allowed: no negative length"),
    ([1], [2**31], "seq_lens_upper_bound", "2147483648; allowed: lengths up to 2147483647"),
    ([1, 1], [5], "seq_lens_upper_bound", "'1 long'; allowed: as long as query_lens, which has 2"),
    (np.zeros(0, int), np.zeros(0, int), "query_lens", "'empty'; allowed: at least one sequence"),
    ([[1]], [5], "query_lens", r"'an array of shape \(1, 1\)'; allowed: one dimension"),
]


@pytest.mark.parametrize(("queries", "lengths", "argument", "message"), BAD_ARRAYS)
def test_no_batch(queries: Any, lengths: Any, argument: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is {message}"):
        plan_decode(queries, lengths, VARIANT, 0, 80)


def test_arrays_of_other_types() -> None:
    with pytest.raises(TypeError, match=r"^query_lens has dtype float64"):
        plan_decode([1.0], [5], VARIANT, 0, 80)
    with pytest.raises(TypeError, match=r"^seq_lens_upper_bound has dtype bool"):
        plan_decode([1], [True], VARIANT, 0, 80)


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("window", -1, ArgumentError),
        ("window", 2**31, ArgumentError),
        ("window", "1", TypeError),
        ("target_workgroups", 0, ArgumentError),
        ("target_workgroups", 32768, ArgumentError),
        ("target_workgroups", 80.0, TypeError),
        ("target_workgroups", np.True_, TypeError),
        ("variant", "rdna_decode", TypeError),
    ],
)
def test_bad_settings(argument: str, value: Any, kind: type[Exception]) -> None:
    call: dict[str, Any] = {"variant": VARIANT, "window": 0, "target_workgroups": 80}
    plan_decode([1], [5], **call)
    with pytest.raises(kind, match=f"^{argument} is"):
        plan_decode([1], [5], **{**call, argument: value})
