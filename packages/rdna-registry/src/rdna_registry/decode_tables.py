"""The tuned decode rows, the entries that they make, and the table's own look-up."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

from rdna_registry.arguments import ArgumentError, as_bool, as_int
from rdna_registry.decode_variant import KernelVariant, Layout, as_layout
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.tables import Row, check_unique, checked, read_rows, table_text

_FILE = "decode.csv"
SHAPE_COLUMNS = ("head_size", "num_q_heads", "num_kv_heads", "window", "page_size", "max_query_len")
KNOB_COLUMNS = (
    "max_segments",
    "row_groups",
    "min_segment_blocks",
    "waves",
    "head_dim_split",
    "prefetch",
    "v_in_lds",
    "dot_product",
)


class DecodeShape(NamedTuple):
    """The checked arguments of a decode look-up."""

    num_q_heads: int
    num_kv_heads: int
    head_size: int
    max_query_len: int
    page_size: int
    layout: Layout
    window: int
    dtype: DType
    batched: int

    @property
    def gqa(self) -> int:
        """Query heads of one kv head."""
        return self.num_q_heads // self.num_kv_heads


def as_shape(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    max_query_len: int,
    page_size: int,
    layout: int,
    window: int,
    dtype: object,
    batch: object,
) -> DecodeShape:
    """The arguments of a look-up, checked for what no table could hold: TypeError or ValueError, by name."""
    shape = DecodeShape(
        as_int("num_q_heads", num_q_heads, 1),
        as_int("num_kv_heads", num_kv_heads, 1),
        as_int("head_size", head_size, 1),
        as_int("max_query_len", max_query_len, 1),
        as_int("page_size", page_size, 1),
        as_layout(layout),
        as_int("window", window, 0),
        as_dtype(dtype),
        int(as_bool("batch", batch)),
    )
    if shape.num_q_heads % shape.num_kv_heads:
        raise ArgumentError("num_q_heads", shape.num_q_heads, f"a multiple of num_kv_heads = {shape.num_kv_heads}")
    return shape


class TunedRow(NamedTuple):
    """One tuned row: the fp16 entry for a single sequence, the models it was tuned for, and where it comes from."""

    variant: KernelVariant
    models: str
    origin: str


def parse_tuned_rows(file: str, text: str) -> tuple[TunedRow, ...]:
    """The tuned rows of a table's text; TableError for a row that breaks a rule."""
    rows = list(read_rows(file, text, (*SHAPE_COLUMNS, *KNOB_COLUMNS), ("model", "source")))
    check_unique(rows, SHAPE_COLUMNS)
    return tuple(_tuned_row(row) for row in rows)


def _tuned_row(row: Row) -> TunedRow:
    variant = checked(row, KernelVariant, layout=Layout.HND)
    origin = f"{row.texts['source']} for {row.texts['model']}, {row.place}"
    return TunedRow(variant, row.texts["model"], origin)


@functools.cache
def tuned_rows() -> tuple[TunedRow, ...]:
    """The tuned rows of the package, in the table's order."""
    return parse_tuned_rows(_FILE, table_text(_FILE))


def shape_of(variant: KernelVariant) -> DecodeShape:
    """The look-up arguments that the variant serves."""
    return DecodeShape(
        variant.num_q_heads,
        variant.num_kv_heads,
        variant.head_size,
        variant.max_query_len,
        variant.page_size,
        Layout(variant.layout),
        variant.window,
        variant.dtype,
        variant.batched,
    )


@functools.cache
def _entries() -> dict[DecodeShape, tuple[KernelVariant, TunedRow]]:
    found: dict[DecodeShape, tuple[KernelVariant, TunedRow]] = {}
    for row in tuned_rows():
        for variant in _all_forms(row.variant):
            found[shape_of(variant)] = variant, row
    return found


def _all_forms(variant: KernelVariant) -> Sequence[KernelVariant]:
    return [
        dataclasses.replace(variant, dtype=dtype, batched=batched)
        for dtype in (DType.fp16, DType.bf16)
        for batched in (0, 1)
    ]


def tuned_entry(shape: DecodeShape) -> tuple[KernelVariant, TunedRow] | None:
    """The tuned entry of exactly this shape, and its row."""
    return _entries().get(shape)


@functools.cache
def variants() -> tuple[KernelVariant, ...]:
    """Every tuned decode entry: each row of the table in fp16 and bf16, for a single sequence and for a batch."""
    return tuple(variant for variant, _ in _entries().values())
