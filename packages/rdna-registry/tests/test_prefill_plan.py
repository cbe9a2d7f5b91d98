from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rdna_registry import MIN_SEGMENT_STEPS, PLAN_MAX_SEGMENTS, ArgumentError, PrefillVariant, plan_prefill
from rdna_registry.prefill_plan_few import plan_few
from rdna_registry.prefill_plan_many import plan_many

VARIANT = PrefillVariant(128, 32, 8, 0, 16, 128, 8, 64, 1, 0, 0, 1, 16, 8)


@st.composite
def shapes(draw: st.DrawFn) -> PrefillVariant:
    kv_heads, gqa = draw(st.integers(1, 8)), draw(st.integers(1, 16))
    waves, split, key_waves = draw(st.sampled_from([(4, 1, 1), (8, 1, 1), (8, 2, 1), (8, 1, 2), (16, 4, 1), (2, 2, 1)]))
    key_tile = draw(st.sampled_from([16, 32, 64])) * key_waves
    return PrefillVariant(128, kv_heads * gqa, kv_heads, 0, 16, 128, waves, key_tile, split, 0, 0, key_waves, 16, 8)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    size = draw(st.integers(1, 40))
    longest = draw(st.sampled_from([1, 20, 300, 2000]))
    queries = draw(st.lists(st.integers(0, longest), min_size=size, max_size=size))
    lengths = [max(0, tokens + draw(st.integers(-5, draw(st.sampled_from([0, 500, 20000]))))) for tokens in queries]
    return queries, lengths


windows = st.one_of(st.just(0), st.integers(1, 3000))
targets = st.integers(1, 400)


def starts_of(queries: list[int]) -> NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(queries)]).astype(np.int32)


def steps_of_tile(tokens: int, length: int, tile: int, variant: PrefillVariant, window: int) -> int:
    """Key steps of a tile by the keys that each of its query tokens sees."""
    first_row, last_row = tile * variant.block_rows, (tile + 1) * variant.block_rows - 1
    first = first_row // variant.gqa
    last = min(tokens - 1, last_row // variant.gqa)
    context = max(length, tokens) - tokens
    lowest = max(0, context + first - window + 1) if window else 0
    first_step = lowest // variant.key_tile
    last_step = (context + last) // variant.key_tile
    return last_step - first_step + 1


def check_plan(
    queries: list[int], lengths: list[int], variant: PrefillVariant, window: int, target: int, asked: int
) -> None:
    plan, head_group = plan_prefill(starts_of(queries), np.array(lengths), variant, window, target, asked)
    assert plan.dtype == np.int32
    assert plan.shape[1] == 4
    tiles: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    work = []
    for sequence, packed_tile, packed_segment, slot in plan.tolist():
        tile, split = packed_tile & 0xFFFF, packed_tile >> 16
        segment, segments = packed_segment & 0xFFFF, packed_segment >> 16
        tiles.setdefault((sequence, tile), []).append((segment, segments, split, slot))
        steps = steps_of_tile(queries[sequence], lengths[sequence], tile, variant, window)
        assert segments == 1 or steps // segments >= MIN_SEGMENT_STEPS
        work.append(steps / segments)
    assert work == sorted(work, reverse=True)

    expected = {
        (sequence, tile)
        for sequence, tokens in enumerate(queries)
        for tile in range(-(-tokens * variant.gqa // variant.block_rows))
    }
    assert set(tiles) == expected
    splits = {}
    for segments_of_tile in tiles.values():
        count = segments_of_tile[0][1]
        assert 1 <= count <= PLAN_MAX_SEGMENTS
        # Every segment stands once, so that every key step of the tile is covered once.
        assert [(segment, segments) for segment, segments, _, _ in segments_of_tile] == [
            (segment, count) for segment in range(count)
        ]
        numbers = {(split, slot) for _, _, split, slot in segments_of_tile}
        assert len(numbers) == 1
        split, slot = numbers.pop()
        if count == 1:
            assert (split, slot) == (0, -1)
        else:
            splits[split] = (slot, count)
    slots = 0
    for split in range(len(splits)):
        slot, count = splits[split]
        assert slot == slots
        slots += count
    assert len(splits) * variant.num_kv_heads < target
    assert slots * variant.num_kv_heads < 2 * target
    assert head_group == (variant.num_kv_heads if splits else asked)


def test_golden_plans(golden: Any) -> None:
    for case in golden:
        plan, head_group = plan_prefill(
            case.query_start_loc, case.seq_lens, case.variant, case.window, case.target_workgroups, case.head_group
        )
        assert plan.dtype == np.int32
        np.testing.assert_array_equal(plan, case.plan)
        assert head_group == case.planned_head_group


def test_golden_plans_by_either_form(golden: Any) -> None:
    for case in golden:
        queries = np.diff(case.query_start_loc).astype(np.int64)
        keys = np.maximum(case.seq_lens, queries)
        rest = (case.variant, case.window, case.target_workgroups)
        for plan, split in (plan_few(queries.tolist(), keys.tolist(), *rest), plan_many(queries, keys, *rest)):
            np.testing.assert_array_equal(plan, case.plan)
            assert split == (case.plan[:, 3] >= 0).any()


@settings(deadline=None)
@given(batches(), shapes(), windows, targets, st.sampled_from([0, 4, 8]))
def test_properties(
    batch: tuple[list[int], list[int]], variant: PrefillVariant, window: int, target: int, asked: int
) -> None:
    check_plan(*batch, variant, window, target, asked)


@settings(deadline=None)
@given(batches(), shapes(), windows, targets)
def test_both_forms_agree(
    batch: tuple[list[int], list[int]], variant: PrefillVariant, window: int, target: int
) -> None:
    queries = np.array(batch[0], np.int64)
    keys = np.maximum(np.array(batch[1], np.int64), queries)
    few, few_split = plan_few(queries.tolist(), keys.tolist(), variant, window, target)
    many, many_split = plan_many(queries, keys, variant, window, target)
    np.testing.assert_array_equal(few, many)
    assert few_split == many_split


def test_one_huge_sequence() -> None:
    check_plan([40_000], [1_000_000], VARIANT, 0, 80, 0)
    plan, head_group = plan_prefill([0, 1], [2**31 - 1], VARIANT, 0, 80)
    assert len(plan) == 10  # 80 workgroups on 8 kv heads
    assert head_group == 8


def test_thousands_of_small_sequences() -> None:
    generator = np.random.default_rng(7)
    queries = generator.integers(0, 9, 5000).tolist()
    lengths = [tokens + int(context) for tokens, context in zip(queries, generator.integers(0, 900, 5000), strict=True)]
    for window in (0, 100):
        check_plan(queries, lengths, VARIANT, window, 80, 4)


def test_one_huge_sequence_among_thousands() -> None:
    check_plan([*[1] * 2000, 900, *[1] * 2000], [*[40] * 2000, 3_000_000, *[40] * 2000], VARIANT, 0, 192, 0)


def test_the_last_tile_of_a_sequence_comes_first() -> None:
    plan, head_group = plan_prefill([0, 64], [64], VARIANT, 0, 80, 3)
    assert plan.tolist() == [[0, 1, 1 << 16, -1], [0, 0, 1 << 16, -1]]
    assert head_group == 3


@pytest.mark.parametrize("size", [1, 40])
def test_no_query_tokens(size: int) -> None:
    plan, head_group = plan_prefill([5] * (size + 1), [9] * size, VARIANT, 0, 80, 4)
    assert plan.shape == (0, 4)
    assert plan.dtype == np.int32
    assert head_group == 4


def test_sequences_without_query_tokens_change_nothing_but_the_numbers() -> None:
    plan, _ = plan_prefill([0, 100, 150], [300, 70], VARIANT, 0, 80)
    padded, _ = plan_prefill([0, 0, 100, 100, 150], [8, 300, 0, 70], VARIANT, 0, 80)
    padded[:, 0] = (padded[:, 0] - 1) // 2
    np.testing.assert_array_equal(plan, padded)


def test_seq_lens_below_the_query_length() -> None:
    np.testing.assert_array_equal(
        plan_prefill([0, 500], [3], VARIANT, 0, 80)[0], plan_prefill([0, 500], [500], VARIANT, 0, 80)[0]
    )


@pytest.mark.parametrize("dtype", ["int64", "uint8", ">i4"])
def test_other_integer_types(dtype: str) -> None:
    wanted = plan_prefill([0, 100, 150], [200, 70], VARIANT, 0, 80)[0]
    got = plan_prefill(np.array([0, 100, 150], dtype), np.array([200, 70], dtype), VARIANT, 0, 80)[0]
    np.testing.assert_array_equal(got, wanted)


def test_strided_arrays() -> None:
    starts, lengths = np.array([0, 9, 100, 9, 150]), np.array([200, 9, 70])
    got = plan_prefill(starts[::2], lengths[::2], VARIANT, 0, 80)[0]
    np.testing.assert_array_equal(got, plan_prefill([0, 100, 150], [200, 70], VARIANT, 0, 80)[0])


def test_arrays_changed_in_place_are_planned_again() -> None:
    starts, lengths = np.array([0, 100, 150], np.int32), np.array([200, 70], np.int32)
    before = plan_prefill(starts, lengths, VARIANT, 0, 80)[0]
    np.testing.assert_array_equal(plan_prefill(starts, lengths, VARIANT, 0, 80)[0], before)
    starts[1] = 20
    after = plan_prefill(starts, lengths, VARIANT, 0, 80)[0]
    assert after.tolist() == plan_prefill([0, 20, 150], [200, 70], VARIANT, 0, 80)[0].tolist()
    assert after.tolist() != before.tolist()
    lengths[0] = 3000
    assert plan_prefill(starts, lengths, VARIANT, 0, 80)[0].tolist() != after.tolist()


def test_a_plan_belongs_to_the_caller() -> None:
    starts, lengths = np.array([0, 100, 150]), np.array([200, 70])
    wanted = plan_prefill(starts, lengths, VARIANT, 0, 80)[0].tolist()
    for _ in range(3):
        plan, _ = plan_prefill(starts, lengths, VARIANT, 0, 80)
        assert plan.tolist() == wanted
        plan[:] = -7


def test_settings_have_plans_of_their_own() -> None:
    batch = (np.array([0, 3000]), np.array([9000]))
    other = dataclasses.replace(VARIANT, key_tile=32)
    plans = [
        plan_prefill(*batch, VARIANT, 0, 80),
        plan_prefill(*batch, VARIANT, 500, 80),
        plan_prefill(*batch, VARIANT, 0, 4000),
        plan_prefill(*batch, other, 0, 4000),
        plan_prefill(*batch, VARIANT, 0, 80, 5),
    ]
    assert [group for _, group in plans] == [0, 0, 8, 8, 5]
    assert len({plan.tobytes() for plan, _ in plans}) == 4
    assert plans[0][0].tobytes() == plans[4][0].tobytes()


def test_bytes_that_mean_other_numbers_are_not_mistaken() -> None:
    pairs = np.array([1, 0, 2, 0, 3, 0], np.int32)
    plan_prefill(pairs.view(np.int64), np.array([9, 9]), VARIANT, 0, 80)
    with pytest.raises(ArgumentError, match=r"^query_start_loc is"):
        plan_prefill(pairs, np.array([9, 9]), VARIANT, 0, 80)


def test_variants_beyond_the_cache() -> None:
    for window in range(200):
        assert len(plan_prefill([0, 100], [100], VARIANT, window, 80)[0]) == 4


BAD_ARRAYS: list[tuple[Any, Any, str, str]] = [
    ([0, 5, 3], [5, 5], "query_start_loc", "decreasing after element 1'; allowed: starts that do not decrease"),
    ([0, 5], [-1], "seq_lens", "-1; allowed: no negative length"),
    ([0, 5], [2**31], "seq_lens", "2147483648; allowed: lengths up to 2147483647"),
    ([0, 2**31], [5], "query_start_loc", "2147483648; allowed: lengths up to 2147483647"),
    ([0, 5, 9], [5], "query_start_loc", "'3 long'; allowed: one longer than seq_lens, which has 1"),
    (np.zeros(1, int), np.zeros(0, int), "seq_lens", "'empty'; allowed: at least one sequence"),
    ([[0, 5]], [5], "query_start_loc", r"'an array of shape \(1, 2\)'; allowed: one dimension"),
    ([0, 5], 5, "seq_lens", r"'an array of shape \(\)'; allowed: one dimension"),
]


@pytest.mark.parametrize(("starts", "lengths", "argument", "message"), BAD_ARRAYS)
def test_no_batch(starts: Any, lengths: Any, argument: str, message: str) -> None:
    for _ in range(2):
        with pytest.raises(ArgumentError, match=f"^{argument} is '?{message}"):
            plan_prefill(starts, lengths, VARIANT, 0, 80)


@pytest.mark.parametrize("value", [[0.0, 5.0], ["a", "b"], [True, False], [None, 1], object(), [[1], [2, 3]]])
def test_arrays_of_other_types(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^query_start_loc (has dtype|cannot be read)"):
        plan_prefill(value, [5], VARIANT, 0, 80)
    with pytest.raises(TypeError, match=r"^seq_lens (has dtype|cannot be read)"):
        plan_prefill([0, 5], value, VARIANT, 0, 80)


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.array([0, 5], mask=[False, True])
    with pytest.raises(TypeError, match=r"^query_start_loc is a masked array; a plain one is needed"):
        plan_prefill(masked, [5], VARIANT, 0, 80)
    with pytest.raises(TypeError, match=r"^seq_lens is a masked array; a plain one is needed"):
        plan_prefill([0, 5], masked[1:], VARIANT, 0, 80)


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("window", -1, ArgumentError),
        ("window", 2**31, ArgumentError),
        ("window", 1.0, TypeError),
        ("target_workgroups", 0, ArgumentError),
        ("target_workgroups", "80", TypeError),
        ("head_group", -1, ArgumentError),
        ("head_group", None, TypeError),
        ("variant", None, TypeError),
    ],
)
def test_bad_settings(argument: str, value: Any, kind: type[Exception]) -> None:
    call: dict[str, Any] = {"variant": VARIANT, "window": 1, "target_workgroups": 80, "head_group": 0}
    plan_prefill([0, 5], [5], **call)
    with pytest.raises(kind, match=f"^{argument} is"):
        plan_prefill([0, 5], [5], **{**call, argument: value})


def test_the_tile_limit() -> None:
    # 128 rows are 32 tokens of 4 heads: 65536 tiles are 2097152 tokens.
    most = 65536 * 32
    plan, _ = plan_prefill([0, most], [most], VARIANT, 0, 80)
    assert plan[:, 1].max() & 0xFFFF == 65535
    with pytest.raises(
        ArgumentError, match=r"2097153 query tokens long in sequence 1'; allowed: at most 2097152 tokens"
    ):
        plan_prefill([0, 5, 5 + most + 1], [5, 5], VARIANT, 0, 80)


def test_more_tiles_than_that_in_many_sequences() -> None:
    plan, _ = plan_prefill(np.arange(70_001), np.ones(70_000, int), VARIANT, 0, 80)
    assert plan[:, 0].tolist() == list(range(70_000))


def test_more_split_tiles_than_a_row_can_name() -> None:
    variant = dataclasses.replace(VARIANT, num_q_heads=1, num_kv_heads=1)
    starts, lengths = np.arange(40_001), np.full(40_000, 5000)
    with pytest.raises(ArgumentError, match=r"^target_workgroups is .*32768 split tiles at most"):
        plan_prefill(starts, lengths, variant, 0, 10**6)
