"""The tuned prefill rows and cells, and the entries that they make."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

from rdna_registry.dtypes import DType
from rdna_registry.prefill_variant import PREFILL_CONFIG_FIELDS, PREFILL_MIN_M, PrefillVariant
from rdna_registry.tables import Row, TableError, check_unique, checked, read_rows, table_text

_FILE = "prefill.csv"
_CELL_FILE = "prefill_batch.csv"
_COLUMNS = tuple(column for column in PREFILL_CONFIG_FIELDS if column != "dtype")
_SHAPE_COLUMNS = ("head_size", "num_q_heads", "num_kv_heads", "window", "page_size")

PREFILL_BATCH_CONFIG_FIELDS: tuple[str, ...] = (
    "num_q_heads",
    "num_kv_heads",
    "head_size",
    "page_size",
    "window",
    "min_mean_m",
    "min_keys",
    "min_query_len",
    "head_group",
)
_CELL_SHAPE = PREFILL_BATCH_CONFIG_FIELDS[:5]
_CELL_KEY = PREFILL_BATCH_CONFIG_FIELDS[:7]


class PrefillShape(NamedTuple):
    """What a prefill row is looked up by, except its query length."""

    num_q_heads: int
    num_kv_heads: int
    head_size: int
    page_size: int
    window: int


class PrefillCell(NamedTuple):
    """One cell of a shape's batch table: it serves batches of at least these means, with this build and head group."""

    min_mean_m: int
    min_keys: int
    min_query_len: int
    head_group: int


class PrefillRow(NamedTuple):
    """One tuned row: its fp16 entry, and where it comes from."""

    variant: PrefillVariant
    origin: str


def parse_prefill_rows(file: str, text: str) -> tuple[PrefillRow, ...]:
    """The tuned rows of a table's text; TableError for a row that breaks a rule."""
    rows = list(read_rows(file, text, _COLUMNS, ("source",)))
    check_unique(rows, (*_SHAPE_COLUMNS, "min_query_len"))
    return tuple(_prefill_row(row) for row in rows)


def _prefill_row(row: Row) -> PrefillRow:
    if row.numbers["min_query_len"] < PREFILL_MIN_M:
        raise TableError(row.file, row.line, "min_query_len", row.numbers["min_query_len"], f"{PREFILL_MIN_M} and more")
    return PrefillRow(checked(row, PrefillVariant), f"{row.texts['source']}, {row.place}")


@functools.cache
def prefill_rows() -> tuple[PrefillRow, ...]:
    """The tuned prefill rows of the package, in the table's order."""
    return parse_prefill_rows(_FILE, table_text(_FILE))


def prefill_shape_of(variant: PrefillVariant) -> PrefillShape:
    """The shape that the variant serves."""
    return PrefillShape(*(getattr(variant, field) for field in PrefillShape._fields))


@functools.cache
def prefill_entries() -> dict[tuple[PrefillShape, DType], tuple[PrefillVariant, ...]]:
    """Every tuned prefill entry by shape and dtype, sorted by the query length from which it was tuned."""
    found: dict[tuple[PrefillShape, DType], list[PrefillVariant]] = {}
    for row in prefill_rows():
        for dtype in DType:
            entry = dataclasses.replace(row.variant, dtype=dtype)
            found.setdefault((prefill_shape_of(entry), dtype), []).append(entry)
    return {key: tuple(sorted(rows, key=lambda entry: entry.min_query_len)) for key, rows in found.items()}


def parse_prefill_cells(file: str, text: str) -> dict[PrefillShape, tuple[PrefillCell, ...]]:
    """The cells of a table's text by shape, sorted; TableError for one that breaks a rule, or names no prefill row."""
    rows = list(read_rows(file, text, PREFILL_BATCH_CONFIG_FIELDS, ("source",)))
    check_unique(rows, _CELL_KEY)
    found: dict[PrefillShape, list[PrefillCell]] = {}
    for row in rows:
        shape = PrefillShape(*(row.numbers[column] for column in _CELL_SHAPE))
        cell = PrefillCell(*(row.numbers[column] for column in PREFILL_BATCH_CONFIG_FIELDS[5:]))
        entries = prefill_entries().get((shape, DType.fp16), ())
        if not any(entry.min_query_len == cell.min_query_len for entry in entries):
            allowed = f"that of a row of {_FILE} of the same shape"
            raise TableError(file, row.line, "min_query_len", cell.min_query_len, allowed)
        found.setdefault(shape, []).append(cell)
    return {shape: tuple(sorted(cells)) for shape, cells in found.items()}


@functools.cache
def prefill_cells() -> dict[PrefillShape, tuple[PrefillCell, ...]]:
    """The tuned cells of the package by shape, sorted by their smallest means."""
    return parse_prefill_cells(_CELL_FILE, table_text(_CELL_FILE))
