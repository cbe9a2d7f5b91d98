"""The shapes of a tuning run: from repeated options, from a table, or those that are published."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from rdna_registry import DType, variants

from rdna_bench.decode_inputs import DecodeProblem
from rdna_bench.files import read_text
from rdna_bench.published import published_times

#: Names that stand for a table.
PUBLISHED, REGISTRY = "published", "registry"

_REQUIRED = ("num_q_heads", "num_kv_heads", "head_size", "max_query_len")
_DEFAULTS = {"window": 0, "page_size": 16}


def shapes_from_options(dtype: str, **values: Sequence[int]) -> list[DecodeProblem]:
    """One shape for each position: options given once hold for all. ValueError where their numbers do not agree."""
    count = max(map(len, values.values()))
    for name, given in values.items():
        if len(given) not in (1, count):
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is given {len(given)} times, another option {count} times: give it 1 or {count}"
            )
    columns = {name: list(given) * (count // len(given)) for name, given in values.items()}
    return [
        DecodeProblem(**{name: column[row] for name, column in columns.items()}, dtype=dtype) for row in range(count)
    ]


def shapes_from_table(table: str, dtype: str) -> list[DecodeProblem]:
    """The shapes of ``published`` (times), of ``registry`` (every tuned row), or of a CSV file.

    A file has a header and the columns num_q_heads, num_kv_heads, head_size and max_query_len; window (0) and page_size
    (16) may follow, and whatever else it has is left alone, so that a table of the registry will do. ValueError for
    another file, and for a value that is no shape's; a shape that stands there twice is taken once.
    """
    if table == PUBLISHED:
        shapes = [
            DecodeProblem(row.num_q_heads, row.num_kv_heads, row.head_size, row.max_query_len, dtype=dtype)
            for row in published_times()
        ]
    elif table == REGISTRY:
        entries = [entry for entry in variants() if entry.dtype is DType.fp16 and not entry.batched]
        names = (*_REQUIRED, *_DEFAULTS)
        shapes = [DecodeProblem(**{name: getattr(entry, name) for name in names}, dtype=dtype) for entry in entries]
    else:
        shapes = _read(Path(table), dtype)
    return list(dict.fromkeys(shapes))


def _read(path: Path, dtype: str) -> list[DecodeProblem]:
    if not path.is_file():
        raise ValueError(f"no table {path}: name a CSV file, {PUBLISHED} or {REGISTRY}")
    reader = csv.DictReader(read_text("--table", path).splitlines())
    try:
        missing = [name for name in _REQUIRED if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
        shapes = [_shape(f"{path} line {reader.line_num}", row, dtype) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file after line {reader.line_num}: {error}") from None
    if not shapes:
        raise ValueError(f"{path} has no shapes: below its header it needs a line for each")
    return shapes


def _shape(place: str, row: dict[str, str], dtype: str) -> DecodeProblem:
    if None in row:
        raise ValueError(f"{place} has more values than the header has names")
    required = {name: _number(place, name, row[name], 1) for name in _REQUIRED}
    others = {
        name: _number(place, name, row.get(name) or str(usual), min(usual, 1)) for name, usual in _DEFAULTS.items()
    }
    return DecodeProblem(**required, **others, dtype=dtype)


def _number(place: str, name: str, text: str | None, least: int) -> int:
    if not text:
        raise ValueError(f"{place} has no {name}; it must be an integer, {least} or more")
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ValueError(f"{place}: {name} is {text!r}; it must be an integer, {least} or more")
    return number
