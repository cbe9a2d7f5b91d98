"""Modelled rows: a table of their own, and when `select` takes them."""

from __future__ import annotations

import dataclasses

import pytest
from rdna_registry import DEFAULT_TARGET, DType, KernelVariant, TableError, explain, provenance, select, variant_for
from rdna_registry.decode_builds import builds_of
from rdna_registry.decode_modelled import (
    CLEAR_GAIN_PERCENT,
    ModelledRow,
    modelled_rows,
    modelled_table,
    parse_modelled_rows,
    preferred_rows,
)
from rdna_registry.decode_tables import tuned_rows
from rdna_registry.tables import table_text

FILE = "decode_modelled.csv"
SOURCE = "modelled by rdna-emulator 0.1.0, 2026-11-30, contexts 128, 1024"
ONE = KernelVariant(64, 14, 2, 1, 16, 1, 7, 1, 3, 8, 0, 1)
OTHER = KernelVariant(64, 14, 2, 2, 16, 1, 2, 1, 1, 8, 0, 1)
ROWS = (
    ModelledRow(ONE, "gfx1151", 17, "Qwen2.5-0.5B", SOURCE, f"{FILE} line 2"),
    ModelledRow(OTHER, "gfx1151", 4, "a, b", SOURCE, f"{FILE} line 3"),
    ModelledRow(ONE, "gfx1100", 9, "a, b", SOURCE, f"{FILE} line 4"),
)


def test_a_table_is_read_as_it_was_written() -> None:
    text = modelled_table(reversed(ROWS))
    assert parse_modelled_rows(FILE, text) == ROWS
    assert modelled_table(parse_modelled_rows(FILE, text)) == text


def test_the_packages_table_is_in_order_and_its_builds_exist() -> None:
    assert modelled_table(modelled_rows()) == table_text(FILE)
    for row in modelled_rows():
        assert row.variant.build in builds_of(row.variant.head_size)


def test_where_a_row_comes_from() -> None:
    assert ROWS[0].origin == f"{SOURCE} for gfx1151 (17 % faster at best than without it), {FILE} line 2"


@pytest.mark.parametrize(
    ("given", "changed", "column"),
    [
        (",17,", ",-1,", "gain_percent"),
        (",17,", ",,", "gain_percent"),
        ("64,14,2", "64,15,2", "num_q_heads"),
        ("gfx1151", "gfx1103", "target"),
        ("gfx1151", " ", "target"),
    ],
)
def test_a_bad_row(given: str, changed: str, column: str) -> None:
    with pytest.raises(TableError, match=rf"^{FILE} line 2, column {column}: "):
        parse_modelled_rows(FILE, modelled_table(ROWS).replace(given, changed, 1))


def test_a_shape_twice() -> None:
    with pytest.raises(TableError, match=r"line 3, .*rule: no shape twice; line 2 has it too"):
        parse_modelled_rows(FILE, modelled_table([ROWS[0], ROWS[0]]))


CLEAR = [row for row in modelled_rows() if row.gain_percent >= CLEAR_GAIN_PERCENT]
OTHERS = [row for row in modelled_rows() if row.gain_percent < CLEAR_GAIN_PERCENT]


def call_of(row: ModelledRow, dtype: DType = DType.fp16) -> tuple[int, int, int, int, int, int, int, DType]:
    entry = row.variant
    heads = entry.num_q_heads, entry.num_kv_heads, entry.head_size
    return (*heads, entry.max_query_len, entry.page_size, 1, entry.window, dtype)


def test_select_takes_a_row_of_clear_gain_for_one_sequence() -> None:
    assert len(CLEAR) > 20
    for row in CLEAR:
        for dtype in DType:
            call, target = call_of(row, dtype), row.target
            entry = select(*call, target=target)
            assert entry == dataclasses.replace(row.variant, dtype=dtype)
            assert entry != select(*call, target=target, modelled=False)
            origin = provenance(entry, target)
            assert origin.startswith(f"modelled: {row.source} for {target} ({row.gain_percent} % faster at best ")
            assert f"is {origin}." in explain(*call, target=target)
            batch = select(*call, True, target=target)
            assert batch == select(*call, True, modelled=False)
            assert not provenance(batch, target).startswith("modelled: ")


def test_a_modelled_choice_says_how_well_the_model_ranks() -> None:
    note = "; the model's ranks agree with published times to 0.89 at 128, 0.87 at 1024, 0.73 at 8192, 0.61 at 32768"
    assert f"{note} tokens (Spearman)" in explain(*call_of(CLEAR[0]), target=CLEAR[0].target)


def test_select_leaves_a_row_of_less_gain() -> None:
    assert OTHERS
    for row in OTHERS:
        chosen = select(*call_of(row), target=row.target)
        assert not provenance(chosen, row.target).startswith("modelled: ")
        assert provenance(row.variant, row.target).startswith(("given: ", "derived: "))


def test_the_published_rows_are_what_they_were() -> None:
    published = {row.variant for row in tuned_rows()}
    for row in modelled_rows():
        found = variant_for(*call_of(row))
        assert found is None or found in published
        assert found != row.variant


def test_neighbours_have_the_knobs_of_their_modelled_rows() -> None:
    assert preferred_rows(1, DEFAULT_TARGET) == tuned_rows()
    [row] = [row for row in CLEAR if (*call_of(row)[:5], row.target) == (14, 2, 64, 1, 16, DEFAULT_TARGET)]
    derived = select(14, 2, 64, 1, 784, 1, 0, "fp16")
    assert derived == dataclasses.replace(row.variant, page_size=784)
    assert provenance(derived) == f"derived: from a row {row.origin}"


def test_each_target_has_its_own_rows() -> None:
    shapes = {target: {call_of(row) for row in CLEAR if row.target == target} for target in ("gfx1151", "gfx1100")}
    assert all(len(calls) > 20 for calls in shapes.values())
    both = shapes["gfx1151"] & shapes["gfx1100"]
    assert any(select(*call, target="gfx1151") != select(*call, target="gfx1100") for call in both)
    for call in both:  # a target that nothing was modelled for has none
        assert select(*call, target="gfx1103") == select(*call, modelled=False)
        assert not explain(*call, target="gfx1103").partition(" is ")[2].startswith("modelled: ")
    assert select(*call_of(CLEAR[0])) == select(*call_of(CLEAR[0]), target=DEFAULT_TARGET)


def test_a_target_that_nothing_is_compiled_for() -> None:
    with pytest.raises(ValueError, match="target is 'gfx90a'; allowed: one of gfx1151, gfx1100, "):
        select(*call_of(ROWS[0]), target="gfx90a")
    with pytest.raises(ValueError, match="target is 'gfx90a'"):
        provenance(ONE, "gfx90a")
    assert "No entry: target is 'gfx90a'" in explain(*call_of(ROWS[0]), target="gfx90a")


def test_modelled_is_a_bool() -> None:
    with pytest.raises(TypeError, match="modelled is 1 of type int; a bool is needed"):
        select(*call_of(ROWS[0]), modelled=1)  # type: ignore[arg-type]  # wrong on purpose
