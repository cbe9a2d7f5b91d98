"""Bytes needed, counted by hand, and sums over launches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from rdna_bench.traffic import Tally, needed_bytes
from rdna_kernels import LaunchRecord


def needed(lengths: list[int], max_query_len: int = 1, window: int = 0) -> int:
    """Bytes needed with 6 q heads on 2 kv heads of 64 in fp16, pages of 16."""
    q = np.zeros((len(lengths) * max_query_len, 6, 64), np.float16)
    cache = np.zeros((1, 2, 16, 128), np.float16)
    return needed_bytes(q, cache, np.array(lengths, np.int32), max_query_len, window)


def by_hand(rows: int, keys: int, pages: int) -> int:
    return 2 * rows * 6 * 64 * 2 + keys * 2 * 128 * 2 + pages * 4


@pytest.mark.parametrize(
    ("lengths", "max_query_len", "window", "keys", "pages"),
    [
        ([1], 1, 0, 1, 1),
        ([17], 1, 0, 17, 2),
        ([0], 1, 0, 0, 0),
        ([100, 33], 4, 0, 133, 10),
        ([96], 1, 10, 10, 1),
        ([97], 1, 10, 10, 2),
        ([100], 1, 20, 20, 2),
        ([100], 4, 10, 13, 2),
        ([8], 1, 100, 8, 1),
        ([2], 4, 1, 2, 1),
        ([0], 4, 8, 0, 0),
    ],
)
def test_needed_bytes(lengths: list[int], max_query_len: int, window: int, keys: int, pages: int) -> None:
    expected = by_hand(len(lengths) * max_query_len, keys, pages)
    assert needed(lengths, max_query_len, window) == expected


def record(build: str, instructions: int, **lines: int) -> LaunchRecord:
    counts: dict[str, Any] = {"wave_instructions": instructions, "wmma": 4, "unique_lines_by_argument": lines}
    return LaunchRecord("decode", build, "gfx1151", "emulated", 3, counts, f"tuned: {build}")


def test_sums() -> None:
    tally = Tally()
    tally.add([record("a", 100, q=1, kv_cache=10, out=2, block_table=1, partials=5, seq_lens=1)], 1000, 0.5)
    tally.add([record("b", 50, q=1, kv_cache=1, out=1, block_table=1)], 500, 0.25)
    tally.add([record("a", 150, q=1, kv_cache=1, out=1, block_table=1)], 500, 0.25)
    result = tally.to_dict()
    assert json.loads(json.dumps(result)) == result
    assert result["builds"] == [
        {"name": "a", "launches": 2, "provenance": "tuned: a"},
        {"name": "b", "launches": 1, "provenance": "tuned: b"},
    ]
    assert (result["launches"], result["workgroups"], result["wmma"]) == (3, 9, 12)
    assert (result["wave_instructions"], result["wave_instructions_per_second"]) == (300, 300.0)
    assert (result["bytes_touched"], result["bytes_needed"], result["bytes_scratch"]) == (22 * 128, 2000, 6 * 128)
    assert result["touched_over_needed"] == 22 * 128 / 2000


def test_nothing_launched() -> None:
    assert Tally().to_dict()["touched_over_needed"] == 0.0
