"""The rules of the prefill planner, tile by tile in plain Python: the faster form for a few tiles."""

from __future__ import annotations

import array
import math
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from rdna_registry.prefill_variant import PrefillVariant

PLAN_MAX_SEGMENTS = 16
"""Most KV segments of a tile."""

MIN_SEGMENT_STEPS = 4
"""Fewest key steps of a segment of a split tile."""

WHOLE = 1 << 16
"""The third column of a tile that is not split: segment 0 of 1."""


def plan_few(
    queries: list[int], keys: list[int], variant: PrefillVariant, window: int, target: int
) -> tuple[NDArray[np.int32], bool]:
    """The rows of a plan, and whether a tile is split; ``keys`` are not below ``queries``."""
    gqa, rows, step = variant.gqa, variant.block_rows, variant.key_tile
    tiles = []
    for sequence, (tokens, length) in enumerate(zip(queries, keys, strict=True)):
        context = length - tokens
        for tile in range(-(-tokens * gqa // rows) - 1, -1, -1):
            visited = context + min(tokens, -(-(tile + 1) * rows // gqa))
            if window:
                visited -= max(0, context + tile * rows // gqa - window + 1) // step * step
            tiles.append((-(-visited // step), sequence, tile))

    load = max(variant.num_kv_heads * sum(tile[0] for tile in tiles) / target, MIN_SEGMENT_STEPS)
    entries: list[tuple[float, tuple[int, int, int, int]]] = []
    split = slot = 0
    for steps, sequence, tile in tiles:
        if steps <= load or steps < 2 * MIN_SEGMENT_STEPS:
            entries.append((-steps, (sequence, tile, WHOLE, -1)))
            continue
        segments = min(math.ceil(steps / load), steps // MIN_SEGMENT_STEPS, PLAN_MAX_SEGMENTS)
        for segment in range(segments):
            row = (sequence, tile | split << 16, segment | segments << 16, slot)
            entries.append((-steps / segments, row))
        split += 1
        slot += segments
    entries.sort(key=itemgetter(0))
    values = array.array("i")
    for _, row in entries:
        values.extend(row)
    return np.array(values, dtype=np.int32).reshape(-1, 4), split > 0
