from __future__ import annotations

import dataclasses
import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdna_registry import (
    BUILDABLE_HEAD_SIZES,
    MAX_GQA,
    MAX_QUERY_LEN,
    SERVED_HEAD_SIZES,
    ArgumentError,
    DType,
    KernelVariant,
    Layout,
    builds,
    explain,
    key_block,
    provenance,
    select,
    variant_for,
    variants,
    workgroups_per_row,
)
from rdna_registry.decode_builds import builds_of
from rdna_registry.decode_rule import LONGEST_TUNED, MOST_SEGMENTS, derive
from rdna_registry.decode_tables import as_shape

CALL: dict[str, Any] = {
    "num_q_heads": 14,
    "num_kv_heads": 2,
    "head_size": 64,
    "max_query_len": 1,
    "page_size": 16,
    "layout": 1,
    "window": 0,
    "dtype": "fp16",
}

calls = st.fixed_dictionaries(
    {
        "num_kv_heads": st.integers(1, 64),
        "head_size": st.one_of(st.sampled_from(SERVED_HEAD_SIZES), st.sampled_from(BUILDABLE_HEAD_SIZES)),
        "max_query_len": st.one_of(st.integers(1, 8), st.integers(9, MAX_QUERY_LEN)),
        "page_size": st.integers(1, 200).map(lambda pages: 16 * pages),
        "layout": st.just(1),
        "window": st.one_of(st.just(0), st.integers(1, 100_000)),
        "dtype": st.sampled_from(["fp16", "bf16"]),
        "batch": st.booleans(),
    }
)


def entry_call(entry: KernelVariant) -> dict[str, Any]:
    call = {name: getattr(entry, name) for name in CALL}
    return {**call, "batch": bool(entry.batched)}


def test_every_row_gives_four_entries() -> None:
    entries = variants()
    assert len(entries) == len(set(entries)) == 1280
    assert {(entry.dtype, entry.batched) for entry in entries} == {
        (dtype, batched) for dtype in DType for batched in (0, 1)
    }
    assert {entry.layout for entry in entries} == {Layout.HND}


def test_every_entry_is_found_by_its_shape() -> None:
    for entry in variants():
        assert variant_for(**entry_call(entry)) is entry


def test_the_knobs_of_a_row() -> None:
    entry = variant_for(16, 2, 64, 8, 16, 1, 0, "bf16", True)
    assert entry == KernelVariant(64, 16, 2, 8, 16, 1, 5, 4, 4, 8, 0, 1, 0, 0, DType.bf16, 0, 1)


def test_numpy_integers_and_dtypes_do() -> None:
    call: dict[str, Any] = {
        name: np.int64(value) if isinstance(value, int) else np.dtype("f2") for name, value in CALL.items()
    }
    assert variant_for(**call) is variant_for(**CALL)
    assert select(**call, modelled=False) is variant_for(**CALL)


@pytest.mark.parametrize(
    "change",
    [
        {"layout": 0},
        {"page_size": 32},
        {"page_size": 17},
        {"window": 512},
        {"max_query_len": 9},
        {"num_q_heads": 12},
        {"head_size": 80},
        {"head_size": 63},
    ],
    ids=str,
)
def test_shapes_without_a_row(change: dict[str, Any]) -> None:
    assert variant_for(**{**CALL, **change}) is None
    assert variant_for(**{**CALL, **change}) is None  # from the cache, too


BAD_VALUES: list[tuple[str, Any]] = [
    *((name, value) for name in ("num_q_heads", "num_kv_heads", "head_size", "max_query_len") for value in (0, -1)),
    ("num_q_heads", 13),
    ("page_size", 0),
    ("layout", 2),
    ("layout", -1),
    ("window", -1),
    ("dtype", "fp32"),
    ("dtype", None),
]


@pytest.mark.parametrize("look_up", [variant_for, select])
@pytest.mark.parametrize(("argument", "value"), BAD_VALUES)
def test_values_that_no_shape_has(look_up: Any, argument: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is {value!r}; allowed: "):
        look_up(**{**CALL, argument: value})


@pytest.mark.parametrize("look_up", [variant_for, select, explain])
@pytest.mark.parametrize("value", ["16", 16.0, None, [16], True])
@pytest.mark.parametrize("argument", [name for name in CALL if name != "dtype"])
def test_values_of_other_types(look_up: Any, argument: str, value: object) -> None:
    look_up(**CALL)  # an equal number of the right type is in the cache
    with pytest.raises(TypeError, match=f"^{argument} is .*an integer is needed"):
        look_up(**{**CALL, argument: value})


@pytest.mark.parametrize("look_up", [variant_for, select, explain])
@pytest.mark.parametrize("batch", [5, 0, 1, 1.0, "yes", None, np.int32(1)])
def test_batch_is_a_bool(look_up: Any, batch: object) -> None:
    with pytest.raises(TypeError, match=rf"batch is {re.escape(repr(batch))} of type .*; a bool is needed"):
        look_up(**CALL, batch=batch)


@pytest.mark.parametrize("batch", [False, True])
def test_batch_may_be_a_numpy_bool(batch: bool) -> None:
    numpy_bool: Any = np.bool_(batch)
    assert select(**CALL, batch=numpy_bool) == select(**CALL, batch=batch)
    assert select(**CALL, batch=batch).batched == batch


def test_a_dtype_that_cannot_be_a_key() -> None:
    with pytest.raises(ArgumentError, match=r"^dtype is"):
        variant_for(**{**CALL, "dtype": ["fp16"]})


NOT_SERVED: list[tuple[dict[str, Any], str, str]] = [
    ({"layout": 0}, "layout", r"1 \(HND\)"),
    ({"head_size": 70}, "head_size", "a multiple of 8 up to 512, for rows are loaded 16 bytes at a time"),
    ({"head_size": 1024}, "head_size", "a multiple of 8 up to 512"),
    ({"max_query_len": 128}, "max_query_len", "1 to 127"),
    ({"page_size": 17}, "page_size", "a multiple of 16"),
    ({"page_size": 8}, "page_size", "a multiple of 16"),
    ({"num_q_heads": 66}, "num_q_heads", "at most 32 for each kv head, here 64"),
    ({"num_q_heads": 2**16, "num_kv_heads": 2**16}, "num_q_heads", "1 to 65535"),
    ({"page_size": 2**31}, "page_size", "16 to 2147483647"),
    ({"window": 2**31}, "window", "0 to 2147483647"),
]


@pytest.mark.parametrize(("change", "argument", "allowed"), NOT_SERVED, ids=str)
def test_shapes_that_no_build_serves(change: dict[str, Any], argument: str, allowed: str) -> None:
    call = {**CALL, **change}
    assert variant_for(**call) is None
    with pytest.raises(ArgumentError, match=f"^{argument} is {call[argument]}; allowed: {allowed}"):
        select(**call)
    assert explain(**call).startswith(f"No entry: {argument} is {call[argument]}; allowed: ")
    near = re.search(rf"; the nearest build is (\S+), for (.*\b{argument} = \d+.*)\.$", explain(**call))
    assert near is not None
    served = {**call, **{name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", near[2])}}
    assert select(**served).build.name == near[1]


def test_select_gives_the_tuned_entry() -> None:
    for entry in variants():
        if not entry.dot_product:
            assert select(**entry_call(entry), modelled=False) is entry
            assert provenance(entry).startswith("tuned: published tuning for ")


def test_select_leaves_dot_product_entries_to_who_asks_for_them() -> None:
    found = [entry for entry in variants() if entry.dot_product]
    assert len(found) == 120
    for entry in found:
        assert variant_for(**entry_call(entry)) is entry
        assert entry.build in builds()
        origin = provenance(entry).removesuffix(" (for the dot-product form, run by the matrix form)")
        assert origin.startswith("tuned: published tuning for ")
        derived = select(**entry_call(entry), modelled=False)
        assert derived.dot_product == select(**entry_call(entry)).dot_product == 0
        row = origin.removeprefix("tuned: ")
        left_out = f"; the row of this shape, {row}, is for the dot-product form, whose knobs are not taken"
        assert provenance(derived).startswith("derived: ")
        assert provenance(derived).endswith(left_out)
        if select(**entry_call(entry)) == derived:
            assert explain(**entry_call(entry)).endswith(f"{left_out}.")


@given(calls, st.integers(1, MAX_GQA))
def test_select_serves_every_shape(call: dict[str, Any], gqa: int) -> None:
    call["num_q_heads"] = gqa * call["num_kv_heads"]
    entry = select(**call)
    assert entry_call(entry) == {**call, "dtype": entry.dtype}
    assert entry.dtype.name == call["dtype"]
    assert entry.build in builds(head_sizes=(entry.head_size,))
    assert 1 <= entry.max_segments <= MOST_SEGMENTS
    assert entry.row_groups * entry.rows_per_group >= gqa * entry.max_query_len
    assert KernelVariant.from_name(entry.name) == entry
    assert provenance(entry).startswith(("tuned: ", "modelled: ", "derived: from "))
    assert f"(build {entry.build.name}) is {provenance(entry)}." in explain(**call)


@pytest.mark.parametrize("head_size", BUILDABLE_HEAD_SIZES)
def test_every_multiple_of_8_is_served_by_its_own_builds(head_size: int) -> None:
    for gqa, max_query_len, window in itertools.product((1, 3, 7, 8, 16, 32), (1, 2, 4, 8, 9, 127), (0, 512)):
        assert select(gqa * 2, 2, head_size, max_query_len, 16, 1, window, "bf16").build in builds_of(head_size)


def test_explain_says_which_builds_are_made_on_request() -> None:
    told = "Builds of head size 72 are made on request."
    assert explain(**{**CALL, "head_size": 72}).endswith(told)
    assert "made on request" not in explain(**CALL)


@pytest.mark.parametrize("head_size", SERVED_HEAD_SIZES)
@pytest.mark.parametrize("max_query_len", [*range(1, 10), 64, 127])
@pytest.mark.parametrize("gqa", [*range(1, 17), 32])
def test_rows_fit_a_build(gqa: int, max_query_len: int, head_size: int) -> None:
    for num_kv_heads in (1, 2, 3, 4, 5, 8, 10, 16, 32):
        entry = select(gqa * num_kv_heads, num_kv_heads, head_size, max_query_len, 16, 1, 0, "fp16")
        assert entry.rows_padded in (16, 32)
        assert entry.build in builds()


def test_another_page_keeps_the_knobs() -> None:
    tuned = select(**CALL, modelled=False)
    derived = select(**{**CALL, "page_size": 784}, modelled=False)
    assert derived == dataclasses.replace(tuned, page_size=784)
    assert provenance(derived) == "derived: from published tuning for Qwen2.5-0.5B, decode.csv line 2"


def test_the_same_group_size_keeps_the_row_groups() -> None:
    entries = [select(7 * heads, heads, 64, 5, 16, 1, 0, "fp16", modelled=False) for heads in (1, 2, 3)]
    assert [entry.row_groups for entry in entries] == [7, 7, 7]
    assert select(6, 1, 64, 5, 16, 1, 0, "fp16", modelled=False).row_groups == 2  # 30 rows in builds of 16


@pytest.mark.parametrize(("window", "model"), [(3000, "gemma-3-12b"), (100_000, "paligemma2")])
def test_a_window_counts_half_as_much_as_the_heads(window: int, model: str) -> None:
    derived = derive(as_shape(16, 8, 256, 3, 16, 1, window, "fp16", False))
    assert derived is not None
    assert derived.nearest.models == model


def test_a_short_window_needs_fewer_segments() -> None:
    # 4 waves take 64 keys at a time: 65 keys touch 3 blocks, which are one segment of at least 2.
    windows = (0, 65, 200, 4096)
    entries = [select(**{**CALL, "window": window}, modelled=False) for window in windows]
    assert [entry.max_segments for entry in entries] == [4, 1, 2, 4]


def test_fewer_kv_heads_get_more_segments() -> None:
    entries = [select(7 * heads, heads, 64, 1, 16, 1, 0, "fp16", modelled=False) for heads in (1, 2, 4, 16)]
    assert [entry.max_segments for entry in entries] == [8, 4, 2, 1]
    smollm = select(9, 3, 64, 1, 16, 1, 0, "fp16", modelled=False)
    assert (smollm.max_segments, smollm.row_groups, smollm.waves) == (3, 1, 4)


@given(calls, st.integers(1, MAX_GQA))
def test_workgroups_are_about_those_of_the_neighbours(call: dict[str, Any], gqa: int) -> None:
    call["num_q_heads"] = gqa * call["num_kv_heads"]
    call["window"] = 0
    derived = derive(as_shape(**call))
    assert derived is not None
    entry = derived.variant
    per_segment = workgroups_per_row(entry)
    tuned = [row.variant for row in derived.neighbours]
    heads = [near.num_q_heads if near.dot_product else workgroups_per_row(near) for near in tuned]
    workgroups = [near.max_segments * each for near, each in zip(tuned, heads, strict=True)]
    wanted = math.prod(workgroups) ** (1 / len(tuned))
    if entry.max_segments < MOST_SEGMENTS:
        assert per_segment * entry.max_segments >= wanted - per_segment / 2 - 1e-6
    if entry.max_segments > 1:
        assert per_segment * entry.max_segments <= wanted + per_segment / 2 + 1e-6


@pytest.mark.parametrize("head_size", [256, 512])
def test_the_rule_keeps_to_the_builds_of_all_head_sizes(head_size: int) -> None:
    known = builds(head_sizes=(256, 512))
    for gqa in (*range(1, 17), 32):
        for max_query_len in range(1, 9):
            for window in (0, 512):
                derived = derive(as_shape(gqa * 3, 3, head_size, max_query_len, 64, 1, window, "fp16", False))
                assert derived is not None
                assert derived.variant.build in known
                assert not derived.variant.dot_product


def test_all_that_is_wrong_is_in_the_nearest_call() -> None:
    reason = explain(**{**CALL, "layout": 0, "page_size": 40, "max_query_len": 500, "head_size": 66})
    assert reason.endswith("for head_size = 64, max_query_len = 127, page_size = 48, layout = 1.")


@pytest.mark.parametrize(("head_size", "tuned"), [(80, 64), (96, 128), (192, 256)])
@pytest.mark.parametrize("max_query_len", [1, 3, 8, 9, 127])
def test_head_sizes_without_rows_follow_their_neighbour(head_size: int, tuned: int, max_query_len: int) -> None:
    for gqa, num_kv_heads in itertools.product((*range(1, 17), 32), (1, 4, 8)):
        for dtype, window in itertools.product(("fp16", "bf16"), (0, 512)):
            shape = as_shape(gqa * num_kv_heads, num_kv_heads, head_size, max_query_len, 48, 1, window, dtype, False)
            derived = derive(shape)
            assert derived is not None
            assert derived.variant.build in builds_of(head_size)
            assert derived.nearest.variant.head_size == tuned
            assert not derived.variant.dot_product


@given(
    st.sampled_from((64, 80, 96, 128, 192, 256, 512)),
    st.integers(1, MAX_GQA),
    st.integers(1, 64),
    st.integers(LONGEST_TUNED + 1, MAX_QUERY_LEN),
    st.sampled_from((0, 16, 512)),
)
def test_long_queries_share_reads(head_size: int, gqa: int, num_kv_heads: int, max_query_len: int, window: int) -> None:
    derived = derive(as_shape(gqa * num_kv_heads, num_kv_heads, head_size, max_query_len, 16, 1, window, "bf16", True))
    assert derived is not None
    entry, rows = derived.variant, gqa * max_query_len
    assert entry.build in builds_of(head_size)
    assert (entry.max_query_len, entry.dot_product) == (max_query_len, 0)
    # All rows have a place, and no build of the head size would need fewer reads of K and V.
    assert entry.row_groups * entry.rows_per_group >= rows
    widest = max(build.rows_padded for build in builds_of(head_size))
    assert widest == (16 if head_size == 512 else 32)
    assert entry.row_groups == -(-rows // widest)
    assert entry.rows_padded == (16 if rows <= 16 else widest)


def test_long_queries_keep_the_shortest_segment_of_their_neighbour() -> None:
    for head_size, heads in ((64, 14), (128, 32), (256, 8), (512, 8)):
        long = derive(as_shape(heads, 2, head_size, 40, 16, 1, 0, "fp16", False))
        assert long is not None
        near = long.nearest.variant
        assert near.max_query_len == LONGEST_TUNED
        keys = long.variant.min_segment_blocks * key_block(long.variant)
        assert 0 <= keys - near.min_segment_blocks * key_block(near) < key_block(long.variant)


def test_dot_product_rows_give_no_knobs() -> None:
    tuned = variant_for(8, 1, 256, 1, 16, 1, 0, "fp16")
    assert tuned is not None
    assert tuned.dot_product
    for gqa in (1, 7, 8, 9, 16, 32):
        derived = derive(as_shape(gqa, 1, 256, 1, 16, 1, 0, "fp16", False))
        assert derived is not None
        assert (derived.variant.dot_product, derived.nearest.variant.dot_product) == (0, 0)


def test_the_rule_has_nothing_where_no_build_fits() -> None:
    assert not builds_of(1000)
    assert derive(as_shape(8, 8, 1000, 1, 16, 1, 0, "fp16", False)) is None


def test_explain_tells_what_the_neighbour_was_tuned_for() -> None:
    assert explain(**{**CALL, "max_query_len": 9}).endswith(" (of 8 query tokens, the nearest).")


def test_provenance_of_other_knobs() -> None:
    tuned = select(**CALL)
    assert provenance(dataclasses.replace(tuned, max_segments=9)) == "given: knobs chosen by the caller"
    assert provenance(dataclasses.replace(tuned, head_size=1000)) == "given: knobs chosen by the caller"
    assert provenance(dataclasses.replace(tuned, layout=0)) == "given: knobs chosen by the caller"


def test_explain_is_one_sentence() -> None:
    assert explain(32, 4, 128, 4, 16, 1, 0, "fp16") == (
        "rdna_decode_128_32_4_4_16_1_4_1_8_0_0_0_0_0_0 (build decode_h128_r16_w8_s0_p0_l0_d0_fp16) is tuned: "
        "published tuning for Qwen3-30B-A3B, decode.csv line 85."
    )
