"""Decode rows tuned with the emulator's issue model: kept apart from the published ones, which hardware tuned.

A row is for one target: how many workgroups a call should have depends on how many processors there are.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
from collections.abc import Iterable
from typing import NamedTuple

from rdna_registry.decode_tables import (
    KNOB_COLUMNS,
    SHAPE_COLUMNS,
    DecodeShape,
    TunedRow,
    shape_of,
    tuned_rows,
)
from rdna_registry.decode_variant import KernelVariant, Layout
from rdna_registry.dtypes import DType
from rdna_registry.tables import Row, TableError, check_unique, checked, read_rows, table_text
from rdna_registry.targets import TARGETS

CLEAR_GAIN_PERCENT = 5
"""The least gain for which `select` prefers a modelled row to what it gives without one.

Published rows were tuned on a GPU, but for another kernel; the model knows our kernel, but ranks the overheads of
published cells only so well (`MODEL_RANKS`). Gains of a few percent are within what it cannot tell.
"""

MODEL_RANKS: dict[int, float] = {128: 0.89, 1024: 0.87, 8192: 0.73, 32768: 0.61}
"""Spearman's rank correlation of modelled and published overhead over the roof, by tokens of context, with the
published knobs: from ``rdna-bench decode --table --published-knobs`` over 52 shapes on gfx1151."""

_FILE = "decode_modelled.csv"
_NUMBERS = (*SHAPE_COLUMNS, *KNOB_COLUMNS, "gain_percent")
_TEXTS = ("target", "model", "source")
_TARGETS = tuple(target.name for target in TARGETS)


class ModelledRow(NamedTuple):
    """A row tuned with the model, for one sequence on one target.

    ``gain_percent``: how much longer the registry's other choice is modelled to take at the context where that is most,
    rounded down; rows are only made where no context takes more than 3 % longer. ``models`` are those of the published
    row of the shape, or the heads where there is none; ``source`` names model, version, date and contexts.
    """

    variant: KernelVariant
    target: str
    gain_percent: int
    models: str
    source: str
    place: str = ""

    @property
    def origin(self) -> str:
        """Where the row comes from, in words."""
        gain = f"{self.gain_percent} % faster at best than without it"
        return f"{self.source} for {self.target} ({gain}), {self.place}"


def parse_modelled_rows(file: str, text: str) -> tuple[ModelledRow, ...]:
    """The rows of a table's text; TableError for a row that breaks a rule."""
    rows = list(read_rows(file, text, _NUMBERS, _TEXTS))
    check_unique(rows, (*SHAPE_COLUMNS, "target"))
    return tuple(map(_modelled_row, rows))


def _modelled_row(row: Row) -> ModelledRow:
    knobs = {name: value for name, value in row.numbers.items() if name != "gain_percent"}
    variant = checked(dataclasses.replace(row, numbers=knobs), KernelVariant, layout=Layout.HND)
    target, models, source = (row.texts[name] for name in _TEXTS)
    if target not in _TARGETS:
        raise TableError(row.file, row.line, "target", target, "one of " + ", ".join(_TARGETS))
    return ModelledRow(variant, target, row.numbers["gain_percent"], models, source, row.place)


def modelled_table(rows: Iterable[ModelledRow]) -> str:
    """The text of a table with these rows, in the order of their targets and shapes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_NUMBERS, *_TEXTS])
    columns = (*SHAPE_COLUMNS, *KNOB_COLUMNS)
    keyed = [(_TARGETS.index(row.target), [getattr(row.variant, name) for name in columns], row) for row in rows]
    for _, values, row in sorted(keyed, key=lambda entry: entry[:2]):
        writer.writerow([*values, row.gain_percent, row.target, row.models, row.source])
    return text.getvalue()


@functools.cache
def modelled_rows() -> tuple[ModelledRow, ...]:
    """The modelled rows of the package, in the table's order."""
    return parse_modelled_rows(_FILE, table_text(_FILE))


@functools.cache
def _clear_rows() -> dict[tuple[str, DecodeShape], ModelledRow]:
    clear = (row for row in modelled_rows() if row.gain_percent >= CLEAR_GAIN_PERCENT)
    return {(row.target, shape_of(row.variant)): row for row in clear}


def clear_row(shape: DecodeShape, target: str) -> ModelledRow | None:
    """A target's modelled row of a shape, if its gain is clear; its knobs serve both dtypes, and one sequence only."""
    return None if shape.batched else _clear_rows().get((target, shape._replace(dtype=DType.fp16)))


@functools.cache
def preferred_rows(batched: int, target: str) -> tuple[TunedRow, ...]:
    """The published rows; for one sequence, those with a clear modelled row of the target have its knobs."""
    return tuned_rows() if batched else tuple(_preferred(row, target) for row in tuned_rows())


def _preferred(row: TunedRow, target: str) -> TunedRow:
    modelled = clear_row(shape_of(row.variant), target)
    return row if modelled is None else TunedRow(modelled.variant, modelled.models, f"a row {modelled.origin}")
