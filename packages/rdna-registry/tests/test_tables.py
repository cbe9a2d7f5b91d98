from __future__ import annotations

import pytest
from rdna_registry import TableError
from rdna_registry.decode_tables import parse_tuned_rows, tuned_rows
from rdna_registry.prefill_tables import (
    PREFILL_BATCH_CONFIG_FIELDS,
    PrefillCell,
    PrefillShape,
    parse_prefill_cells,
    parse_prefill_rows,
    prefill_cells,
    prefill_rows,
)
from rdna_registry.tables import table_text

DECODE = table_text("decode.csv").splitlines()
PREFILL = table_text("prefill.csv").splitlines()
CELLS = table_text("prefill_batch.csv").splitlines()
PARSE = {"decode.csv": parse_tuned_rows, "prefill.csv": parse_prefill_rows, "prefill_batch.csv": parse_prefill_cells}


def changed(lines: list[str], column: str, value: str) -> str:
    header = lines[0].split(",")
    cells = lines[1].split(",")
    cells[header.index(column)] = value
    return "\n".join([lines[0], ",".join(cells)]) + "\n"


def test_the_tables_have_the_published_rows() -> None:
    assert len(tuned_rows()) == len(DECODE) - 1 == 320
    assert len(prefill_rows()) == len(PREFILL) - 1 == 111
    assert prefill_cells() == {}


def test_every_row_has_its_provenance() -> None:
    assert tuned_rows()[0].origin == "published tuning for Qwen2.5-0.5B, decode.csv line 2"
    assert tuned_rows()[-1].origin == "published tuning for gemma-4-31B, decode.csv line 321"
    assert prefill_rows()[0].origin == "published tuning, prefill.csv line 2"


def test_a_quoted_cell_may_hold_commas() -> None:
    assert {row.models for row in tuned_rows()} >= {"Qwen3-8B, Llama-3.1-8B"}


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("head_size", "76", "a multiple of 8"),
        ("num_q_heads", "15", "a multiple of num_kv_heads = 2"),
        ("num_kv_heads", "0", "1 to 65535"),
        ("window", "-1", "a decimal integer"),
        ("page_size", "17", "a multiple of 16"),
        ("max_query_len", "128", "1 to 127"),
        ("max_segments", "", "a decimal integer"),
        ("row_groups", "8", "fewer, so that each has some of the 7 rows"),
        ("min_segment_blocks", "1.5", "a decimal integer"),
        ("waves", "6", "a power of two"),
        ("head_dim_split", "3", "0 or a number that divides waves"),
        ("prefetch", "2", "0 to 1"),
        ("v_in_lds", "yes", "a decimal integer"),
        ("dot_product", "٣", "a decimal integer"),
        ("model", "", "a text that is not empty"),
        ("source", " ", "a text that is not empty"),
    ],
)
def test_a_bad_decode_row(column: str, value: str, rule: str) -> None:
    with pytest.raises(TableError) as caught:
        parse_tuned_rows("decode.csv", changed(DECODE, column, value))
    assert (caught.value.file, caught.value.line, caught.value.column) == ("decode.csv", 2, column)
    assert f"decode.csv line 2, column {column}: " in str(caught.value)
    assert f"rule: {rule}" in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("min_query_len", "127", "128 and more"),
        ("waves", "3", "a power of two"),
        ("key_tile", "8", "a multiple of 16"),
        ("head_dim_split", "8", "a divisor of 4"),
        ("v_t", "2", "0 to 1"),
        ("double_buffer", "2", "0 to 1"),
        ("key_waves", "0", "1 to 32"),
        ("max_segments", "0", "1 to 1024"),
        ("head_group", "0", "1 and more"),
        ("source", "", "a text that is not empty"),
    ],
)
def test_a_bad_prefill_row(column: str, value: str, rule: str) -> None:
    with pytest.raises(TableError) as caught:
        parse_prefill_rows("prefill.csv", changed(PREFILL, column, value))
    assert (caught.value.file, caught.value.line, caught.value.column) == ("prefill.csv", 2, column)
    assert f"rule: {rule}" in str(caught.value)


def cell(**change: int) -> str:
    values = dict(zip(PREFILL_BATCH_CONFIG_FIELDS, (14, 2, 64, 16, 0, 128, 0, 512, 4), strict=True))
    values |= change
    return ",".join(map(str, values.values())) + ",a test\n"


def test_cells() -> None:
    header = CELLS[0] + "\n"
    text = header + cell(min_keys=900) + cell() + cell(num_q_heads=16, head_group=1)
    assert parse_prefill_cells("prefill_batch.csv", text) == {
        PrefillShape(14, 2, 64, 16, 0): (PrefillCell(128, 0, 512, 4), PrefillCell(128, 900, 512, 4)),
        PrefillShape(16, 2, 64, 16, 0): (PrefillCell(128, 0, 512, 1),),
    }


@pytest.mark.parametrize("change", [{"min_query_len": 300}, {"num_q_heads": 12}])
def test_a_cell_without_its_row(change: dict[str, int]) -> None:
    text = CELLS[0] + "\n" + cell() + cell(min_keys=900, **change)
    with pytest.raises(TableError, match=r"line 3, column min_query_len: .* of a row of prefill\.csv") as caught:
        parse_prefill_cells("prefill_batch.csv", text)
    assert caught.value.line == 3


def test_a_shape_twice() -> None:
    for file, lines in (("decode.csv", DECODE), ("prefill.csv", PREFILL)):
        text = "\n".join([*lines[:3], lines[1]])
        with pytest.raises(TableError, match=r"line 4, .*rule: no shape twice; line 2 has it too"):
            PARSE[file](file, text)
    with pytest.raises(TableError, match=r"line 3, .*rule: no shape twice; line 2 has it too"):
        parse_prefill_cells("prefill_batch.csv", CELLS[0] + "\n" + cell() + cell(head_group=2))


@pytest.mark.parametrize("file", list(PARSE))
def test_the_header_is_checked(file: str) -> None:
    header = table_text(file).splitlines()[0]
    for text in ("", header + ",more\n", header.removesuffix(",source") + "\n", header.replace("window", "Window")):
        with pytest.raises(TableError, match=f"^{file} line 1, .*rule: the header is {header}"):
            PARSE[file](file, text)


@pytest.mark.parametrize("line", ["64,14,2", DECODE[1] + ",more", ""])
def test_a_row_of_another_length(line: str) -> None:
    with pytest.raises(TableError, match=r"line 3, .*rule: a row has 16 cells"):
        parse_tuned_rows("decode.csv", "\n".join([*DECODE[:2], line, DECODE[2]]))


def test_a_quote_that_does_not_end() -> None:
    with pytest.raises(TableError, match="rule: comma-separated values, quoted as in RFC 4180"):
        parse_tuned_rows("decode.csv", "\n".join([DECODE[0], DECODE[1].replace("Qwen", '"Qwen')]))
