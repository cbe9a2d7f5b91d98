"""The shapes of a tuning run: from repeated options, from a table, or those that are published."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from rdna_registry import DType, variants

from rdna_bench.decode_inputs import DecodeProblem
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
    another file; a shape that stands there twice is taken once.
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
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in _REQUIRED if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
        shapes = []
        for row in reader:
            numbers = {name: row[name] for name in _REQUIRED}
            numbers |= {name: row.get(name) or str(value) for name, value in _DEFAULTS.items()}
            try:
                shapes.append(DecodeProblem(**{name: int(text) for name, text in numbers.items()}, dtype=dtype))
            except (TypeError, ValueError):
                raise ValueError(f"{path} line {reader.line_num}: {numbers} are not all integers") from None
    return shapes
