"""Modelled rows: a table of their own, and when `select` takes them."""

from __future__ import annotations

import pytest
from rdna_registry import KernelVariant, TableError
from rdna_registry.decode_builds import builds_of
from rdna_registry.decode_modelled import (
    ModelledRow,
    modelled_rows,
    modelled_table,
    parse_modelled_rows,
)
from rdna_registry.tables import table_text

FILE = "decode_modelled.csv"
SOURCE = "modelled by rdna-emulator 0.1.0, 2026-11-30, gfx1151 at 128, 1024 tokens"
ROWS = (
    ModelledRow(KernelVariant(64, 14, 2, 1, 16, 1, 7, 1, 3, 8, 0, 1), 17, "Qwen2.5-0.5B", SOURCE, f"{FILE} line 2"),
    ModelledRow(KernelVariant(64, 14, 2, 2, 16, 1, 2, 1, 1, 8, 0, 1), 4, "a, b", SOURCE, f"{FILE} line 3"),
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
    assert ROWS[0].origin == f"{SOURCE} (17 % faster at best than without it), {FILE} line 2"


@pytest.mark.parametrize(
    ("given", "changed", "column"),
    [(",17,", ",-1,", "gain_percent"), (",17,", ",,", "gain_percent"), ("64,14,2", "64,15,2", "num_q_heads")],
)
def test_a_bad_row(given: str, changed: str, column: str) -> None:
    with pytest.raises(TableError, match=rf"^{FILE} line 2, column {column}: "):
        parse_modelled_rows(FILE, modelled_table(ROWS).replace(given, changed, 1))


def test_a_shape_twice() -> None:
    with pytest.raises(TableError, match=r"line 3, .*rule: no shape twice; line 2 has it too"):
        parse_modelled_rows(FILE, modelled_table([ROWS[0], ROWS[0]]))
