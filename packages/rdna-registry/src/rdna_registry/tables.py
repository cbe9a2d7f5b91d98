"""The tables in the package's data folder: CSV files with a header, checked row by row as they are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TypeVar

from rdna_registry.arguments import ArgumentError

Entry = TypeVar("Entry")


class TableError(ValueError):
    """A table breaks a rule: the message has the file, the line, the column, what stands there and the rule."""

    def __init__(self, file: str, line: int, column: str, given: object, rule: str) -> None:
        super().__init__(f"{file} line {line}, column {column}: {given!r}; rule: {rule}")
        self.file = file
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Row:
    """One row: where it stands, its integers by column, and its texts by column."""

    file: str
    line: int
    numbers: dict[str, int]
    texts: dict[str, str]

    @property
    def place(self) -> str:
        """File and line, as errors and provenance name them."""
        return f"{self.file} line {self.line}"


def table_text(file: str) -> str:
    """The text of a table of the package."""
    return (resources.files("rdna_registry") / "data" / file).read_text(encoding="utf-8")


def read_rows(file: str, text: str, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Row]:
    """The rows of a table whose header is exactly ``numbers + texts``.

    ``numbers`` are columns of plain decimal integers; ``texts`` may not be empty. TableError for anything else.
    """
    header = [*numbers, *texts]
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        first = next(reader, [])
        for column, (given, expected) in enumerate(zip(first + [""] * len(header), header, strict=False), start=1):
            if given != expected:
                raise TableError(file, 1, str(column), given, f"the header is {','.join(header)}")
        if len(first) > len(header):
            raise TableError(file, 1, str(len(header) + 1), first[len(header)], f"the header is {','.join(header)}")
        for cells in reader:
            yield _row(file, reader.line_num, cells, numbers, header)
    except csv.Error as error:
        raise TableError(
            file, reader.line_num, "1", str(error), "comma-separated values, quoted as in RFC 4180"
        ) from None


def _row(file: str, line: int, cells: list[str], numbers: Sequence[str], header: list[str]) -> Row:
    if len(cells) != len(header):
        column = header[len(cells)] if len(cells) < len(header) else str(len(header) + 1)
        raise TableError(file, line, column, f"{len(cells)} cells", f"a row has {len(header)} cells")
    values = dict(zip(header, cells, strict=True))
    for column in numbers:
        if not (values[column].isascii() and values[column].isdigit()):
            raise TableError(file, line, column, values[column], "a decimal integer")
    for column in header[len(numbers) :]:
        if not values[column].strip():
            raise TableError(file, line, column, values[column], "a text that is not empty")
    integers = {column: int(values[column]) for column in numbers}
    return Row(file, line, integers, {column: values[column] for column in header[len(numbers) :]})


def checked(row: Row, make: Callable[..., Entry], **more: object) -> Entry:
    """``make(**row.numbers, **more)``, with what it finds wrong told as an error of the table."""
    try:
        return make(**row.numbers, **more)
    except ArgumentError as error:
        raise TableError(row.file, row.line, error.argument, error.given, error.allowed) from None


def check_unique(rows: Sequence[Row], key: Sequence[str]) -> None:
    """TableError where two rows agree in every column of ``key``."""
    seen: dict[tuple[int | str, ...], Row] = {}
    for row in rows:
        cells = row.numbers | row.texts
        values = tuple(cells[column] for column in key)
        first = seen.setdefault(values, row)
        if first is not row:
            raise TableError(row.file, row.line, key[-1], values[-1], f"no shape twice; line {first.line} has it too")
