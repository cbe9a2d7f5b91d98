from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rdna_registry import (
    PREFILL_BATCH_CONFIG_FIELDS,
    PREFILL_MIN_M,
    ArgumentError,
    DType,
    prefill_batch_cell,
    prefill_batch_features,
    prefill_batch_variant_for,
    prefill_lookup,
    prefill_variant_for,
    prefill_variants,
)
from rdna_registry.prefill_tables import parse_prefill_cells, prefill_entries

SHAPE: dict[str, Any] = {
    "num_q_heads": 14,
    "num_kv_heads": 2,
    "head_size": 64,
    "page_size": 16,
    "window": 0,
    "dtype": "fp16",
}
CALL = {**SHAPE, "layout": 1}


def test_rows_of_a_shape_are_sorted() -> None:
    rows = prefill_variants(**SHAPE)
    assert [row.min_query_len for row in rows] == [128, 512, 1024]
    assert {row.dtype for row in rows} == {DType.fp16}
    assert {row.dtype for row in prefill_variants(**{**SHAPE, "dtype": "bf16"})} == {DType.bf16}
    assert prefill_variants(**{**SHAPE, "page_size": 32}) == ()


def test_every_row_is_listed_under_its_shape() -> None:
    listed = [
        row
        for (shape, dtype) in prefill_entries()
        for row in prefill_variants(
            shape.num_q_heads, shape.num_kv_heads, shape.head_size, shape.page_size, shape.window, dtype
        )
    ]
    assert len(listed) == len(set(listed)) == 222


@pytest.mark.parametrize(
    ("num_tokens", "min_query_len"),
    [(128, 128), (511, 128), (512, 512), (1023, 512), (1024, 1024), (10**9, 1024)],
)
def test_the_row_for_a_number_of_tokens(num_tokens: int, min_query_len: int) -> None:
    row = prefill_variant_for(**CALL, num_tokens=num_tokens)
    assert row is not None
    assert row.min_query_len == min_query_len
    assert row in prefill_variants(**SHAPE)


def test_the_smallest_row_serves_fewer_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = prefill_variants(**SHAPE)[1:]
    monkeypatch.setattr(prefill_lookup, "_entries", lambda *_: (rows, tuple(row.min_query_len for row in rows)))
    assert rows[0].min_query_len == 512
    assert prefill_variant_for(**CALL, num_tokens=130) is rows[0]


@pytest.mark.parametrize(
    "change", [{"num_tokens": 127}, {"num_tokens": 0}, {"layout": 0}, {"num_q_heads": 12}, {"window": 64}], ids=str
)
def test_no_row(change: dict[str, Any]) -> None:
    assert prefill_variant_for(**{**CALL, "num_tokens": 512, **change}) is None


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("num_q_heads", 13),
        ("num_q_heads", 0),
        ("num_kv_heads", 0),
        ("head_size", -1),
        ("page_size", 0),
        ("layout", 3),
        ("window", -1),
        ("dtype", "int8"),
        ("num_tokens", -1),
    ],
)
def test_bad_values(argument: str, value: object) -> None:
    call = {**CALL, "num_tokens": 512, argument: value}
    with pytest.raises(ArgumentError, match=f"^{argument} is {value!r}; allowed: "):
        prefill_variant_for(**call)


@pytest.mark.parametrize("value", ["64", 64.0, None, [64]])
@pytest.mark.parametrize("argument", ["num_q_heads", "num_kv_heads", "head_size", "page_size", "layout", "num_tokens"])
def test_values_of_other_types(argument: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"^{argument} is"):
        prefill_variant_for(**{**CALL, "num_tokens": 512, argument: value})


def test_features_of_a_batch() -> None:
    # 10 tokens that see 1 to 10 keys, and 2 tokens that see 99 and 100; the empty sequence counts for nothing.
    assert prefill_batch_features([0, 10, 10, 12], [10, 50, 100], 0) == (6.0, (55 + 199) / 12)


def test_features_use_at_least_the_query_tokens_as_keys() -> None:
    assert prefill_batch_features([0, 10], [3], 0) == prefill_batch_features([0, 10], [10], 0) == (10.0, 5.5)


def test_features_are_clipped_to_the_window() -> None:
    assert prefill_batch_features([0, 10, 12], [10, 100], 7) == (6.0, (10 * 5.5 + 2 * 7) / 12)


def test_features_of_no_tokens() -> None:
    assert prefill_batch_features([5, 5], [100], 0) == (0.0, 0.0)


def test_golden_features(golden: Any) -> None:
    for case in golden:
        got = prefill_batch_features(case.query_start_loc, case.seq_lens, case.window)
        np.testing.assert_allclose(got, case.features, rtol=1e-12)


@pytest.mark.parametrize(
    ("starts", "lengths", "window", "argument"),
    [([0, 1], [1], -1, "window"), ([0, 2, 1], [1, 1], 0, "query_start_loc"), ([0], [], 0, "seq_lens")],
)
def test_features_of_no_batch(starts: list[int], lengths: list[int], window: int, argument: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is"):
        prefill_batch_features(np.array(starts, int), np.array(lengths, int), window)


CELLS = [(128, 0, 512, 4), (128, 900, 128, 2), (700, 300, 1024, 1), (700, 2000, 512, 8)]


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> None:
    header = ",".join((*PREFILL_BATCH_CONFIG_FIELDS, "source"))
    rows = [",".join(map(str, (14, 2, 64, 16, 0, *cell))) + ",a test" for cell in reversed(CELLS)]
    parsed = parse_prefill_cells("test.csv", "\n".join([header, *rows]))
    monkeypatch.setattr(prefill_lookup, "prefill_cells", lambda: parsed)


@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize(
    ("mean_m", "keys", "cell"),
    [
        (128, 0, 0),
        (128, 899.9, 0),
        (128, 900, 1),
        (1, 5000, 1),
        (699.9, 100, 0),
        (700, 299, 2),
        (700, 1999, 2),
        (1e9, 2000, 3),
    ],
)
def test_the_cell_of_means(mean_m: float, keys: float, cell: int) -> None:
    assert prefill_batch_cell(14, 2, 64, 16, 0, mean_m, keys) == CELLS[cell][2:]


@pytest.mark.usefixtures("cells")
def test_the_variant_of_a_cell() -> None:
    # one sequence, 800 new tokens behind 1800 cached ones: a mean of 2200.5 keys
    variant, head_group = prefill_batch_variant_for(**CALL, query_start_loc=[0, 800], seq_lens=[2600])
    assert variant is not None
    assert (variant.min_query_len, head_group) == CELLS[3][2:]
    assert prefill_batch_cell(16, 2, 64, 16, 0, 800, 0) is None


def test_the_variant_of_a_shape_without_cells() -> None:
    for starts, tokens in (([0, 300, 600], 600), ([0, 1], PREFILL_MIN_M), ([7, 7], PREFILL_MIN_M)):
        variant, head_group = prefill_batch_variant_for(
            **CALL, query_start_loc=starts, seq_lens=[900] * len(starts[1:])
        )
        assert variant is prefill_variant_for(**CALL, num_tokens=tokens)
        assert head_group == 0


def test_no_variant_for_a_batch() -> None:
    for change in ({"layout": 0}, {"num_q_heads": 12}):
        assert prefill_batch_variant_for(**{**CALL, **change}, query_start_loc=[0, 300], seq_lens=[300]) == (None, 0)


@pytest.mark.parametrize(("argument", "means"), [("mean_m", (-1, 5)), ("keys", (5, -1)), ("keys", (5, float("nan")))])
def test_bad_means(argument: str, means: tuple[float, float]) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument} is"):
        prefill_batch_cell(14, 2, 64, 16, 0, *means)


def test_a_bad_batch() -> None:
    with pytest.raises(ArgumentError, match=r"^query_start_loc is 'decreasing after element 0'"):
        prefill_batch_variant_for(**CALL, query_start_loc=[4, 0], seq_lens=[300])
    with pytest.raises(TypeError, match=r"^seq_lens has dtype float64"):
        prefill_batch_variant_for(**CALL, query_start_loc=[0, 4], seq_lens=[300.0])


@pytest.mark.usefixtures("cells")
def test_a_batch_that_changes_in_place() -> None:
    starts, lengths = np.array([0, 800], np.int32), np.array([2600], np.int32)
    batch: dict[str, Any] = {"query_start_loc": starts, "seq_lens": lengths}
    first = prefill_batch_variant_for(**CALL, **batch)
    assert prefill_batch_variant_for(**CALL, **batch) == first
    starts[1], lengths[0] = 140, 140
    changed = prefill_batch_variant_for(**CALL, **batch)
    assert changed[1] == CELLS[0][3] != first[1]
    starts[1], lengths[0] = 800, 2600
    assert prefill_batch_variant_for(**CALL, **batch) == first
    for same_bytes in (lengths.view(np.float32), lengths.reshape(1, 1)):
        with pytest.raises((TypeError, ArgumentError), match=r"^seq_lens"):
            prefill_batch_variant_for(**CALL, query_start_loc=starts, seq_lens=same_bytes)
    with pytest.raises(ArgumentError, match=r"^dtype"):
        prefill_batch_variant_for(**{**CALL, "dtype": ["fp16"]}, **batch)
