"""What others have published of their decode kernels on gfx1151: times on a Radeon 8060S, and counts.

``data/decode_published_gfx1151.csv`` has the times of the HIP kernel whose tuned rows the registry holds, one sequence,
window 0; ``data/decode_counts_others.csv`` has counts of that kernel and of vLLM's Triton kernel, made with another
emulator. Neither was measured by this project.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class PublishedTime:
    """Microseconds of one decode call, by tokens of context."""

    head_size: int
    num_q_heads: int
    num_kv_heads: int
    max_query_len: int
    microseconds: dict[int, float]


@dataclass(frozen=True)
class PublishedCounts:
    """What one decode call of another kernel did; instructions in thousands, partials in kilobytes."""

    num_q_heads: int
    num_kv_heads: int
    head_size: int
    max_query_len: int
    context: int
    kernel: str
    kilo_instructions: float
    requested_over_needed: float
    partials_kb: float


@functools.cache
def published_times() -> tuple[PublishedTime, ...]:
    """Every row of the table of times."""
    return tuple(
        PublishedTime(
            int(row["head_size"]),
            int(row["num_q_heads"]),
            int(row["num_kv_heads"]),
            int(row["max_query_len"]),
            {int(name[4:]): float(value) for name, value in row.items() if re.fullmatch(r"us_s\d+", name)},
        )
        for row in _rows("decode_published_gfx1151.csv")
    )


@functools.cache
def published_counts() -> tuple[PublishedCounts, ...]:
    """Every row of the table of counts."""
    return tuple(
        PublishedCounts(
            int(row["num_q_heads"]),
            int(row["num_kv_heads"]),
            int(row["head_size"]),
            int(row["max_query_len"]),
            int(row["context"]),
            row["kernel"],
            float(row["kilo_instructions"]),
            float(row["requested_over_needed"]),
            float(row["partials_kb"]),
        )
        for row in _rows("decode_counts_others.csv")
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("rdna_bench").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
