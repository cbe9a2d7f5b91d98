"""What launches did, added up: instructions, WMMA, and memory lines touched against bytes needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdna_kernels import LaunchRecord

#: Bytes of the memory line that the emulator counts.
LINE_BYTES = 128

#: Kernel arguments that every algorithm has to move once; the rest (partials, counters, lengths) stays in cache.
NEEDED_ARGUMENTS = ("q", "kv_cache", "out", "block_table")

#: Kernel arguments that hold what segments leave to each other: sums and maxima go with the partial results.
SCRATCH_ARGUMENTS = ("partials", "counters")


def requested_and_scratch(counts: Mapping[str, Any]) -> tuple[int, int]:
    """The bytes that a launch asked of memory, split: all but its scratch, and its scratch, written and read.

    The first is what others' tables count, who leave partial results out; the kernel's own arguments are part of it.
    """
    by_argument = counts["global_bytes_requested_by_argument"]
    scratch = sum(by_argument.get(name, 0) for name in SCRATCH_ARGUMENTS)
    return counts["global_bytes_requested"] - scratch, scratch


def needed_bytes(
    q: NDArray[Any], kv_cache: NDArray[Any], seq_lens: NDArray[np.int32], max_query_len: int, window: int = 0
) -> int:
    """Bytes that a decode call cannot do without: Q, output, the K and V that a token sees, their table entries.

    Shapes are those of ``reference.reference_attention``; partial results and lengths are left out.
    """
    _, num_kv_heads, page_size, row_size = kv_cache.shape
    key_bytes = num_kv_heads * row_size * kv_cache.dtype.itemsize
    total = 2 * q.size * q.dtype.itemsize
    for length in (int(s) for s in seq_lens):
        first_position = max(0, length - max_query_len)
        first_key = max(0, first_position - window + 1) if window else 0
        first_key = min(first_key, length)
        total += (length - first_key) * key_bytes
        total += 4 * (-(-length // page_size) - first_key // page_size)
    return total


@dataclass
class Tally:
    """Sums over launches. Times are wall-clock seconds of whole operator calls, host work included."""

    launches: int = 0
    workgroups: int = 0
    seconds: float = 0.0
    wave_instructions: int = 0
    wmma: int = 0
    bytes_touched: int = 0
    bytes_scratch: int = 0
    bytes_needed: int = 0
    builds: Counter[str] = field(default_factory=Counter)
    provenance: dict[str, str] = field(default_factory=dict)

    def add(self, records: Sequence[LaunchRecord], needed: int, seconds: float) -> None:
        """Add the launches of one operator call that needs ``needed`` bytes and took ``seconds``."""
        self.seconds += seconds
        self.bytes_needed += needed
        for record in records:
            lines = record.counts["unique_lines_by_argument"]
            touched = sum(lines[name] for name in NEEDED_ARGUMENTS)
            self.launches += 1
            self.workgroups += record.workgroups
            self.wave_instructions += record.counts["wave_instructions"]
            self.wmma += record.counts["wmma"]
            self.bytes_touched += touched * LINE_BYTES
            self.bytes_scratch += (sum(lines.values()) - touched) * LINE_BYTES
            self.builds[record.build] += 1
            self.provenance[record.build] = record.provenance

    def to_dict(self) -> dict[str, Any]:
        """All sums and their ratios, ready for JSON."""
        return {
            "builds": [
                {"name": name, "launches": count, "provenance": self.provenance[name]}
                for name, count in sorted(self.builds.items())
            ],
            "launches": self.launches,
            "workgroups": self.workgroups,
            "attention_seconds": self.seconds,
            "wave_instructions": self.wave_instructions,
            "wave_instructions_per_second": self.wave_instructions / self.seconds if self.seconds else 0.0,
            "wmma": self.wmma,
            "bytes_touched": self.bytes_touched,
            "bytes_needed": self.bytes_needed,
            "touched_over_needed": self.bytes_touched / self.bytes_needed if self.bytes_needed else 0.0,
            "bytes_scratch": self.bytes_scratch,
        }
