"""The rules of the prefill planner over whole arrays: the faster form for many tiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rdna_registry.arguments import ArgumentError
from rdna_registry.ordering import INDEX_BITS, largest_first
from rdna_registry.prefill_plan_few import MIN_SEGMENT_STEPS, PLAN_MAX_SEGMENTS, WHOLE
from rdna_registry.prefill_variant import PrefillVariant

_MOST_TILES_OF_A_SEQUENCE = 1 << 16
_MOST_SPLIT_TILES = 1 << 15

Integers = NDArray[np.int64]


def plan_many(
    queries: Integers, keys: Integers, variant: PrefillVariant, window: int, target: int
) -> tuple[NDArray[np.int32], bool]:
    """The rows of a plan, and whether a tile is split; ``keys`` are not below ``queries``."""
    sequence, above = _tiles(queries, variant)
    steps = _steps(queries, keys, sequence, above, variant, window)
    above -= 1
    table = np.empty((len(sequence), 4), dtype=np.int32)
    table[:, 0] = sequence

    # A tile is split where it has more steps than the load and enough for two segments.
    load = max(variant.num_kv_heads * int(np.add.reduce(steps)) / target, MIN_SEGMENT_STEPS)
    splittable = max(load, 2 * MIN_SEGMENT_STEPS - 1)
    if len(steps) and int(np.maximum.reduce(steps)) > splittable:
        split = (steps > splittable).nonzero()[0]
        return _split(table, above, steps, split, load), True
    table[:, 1] = above
    table[:, 2] = WHOLE
    table[:, 3] = -1
    return table.take(largest_first(steps), axis=0), False


def _tiles(queries: Integers, variant: PrefillVariant) -> tuple[Integers, Integers]:
    """For each tile its sequence and one more than its index: a sequence's last tile, the heaviest, comes first."""
    rows = variant.block_rows
    tiles = queries * variant.gqa
    tiles += rows - 1
    tiles //= rows
    ends = tiles.cumsum()
    total = int(ends[-1])
    if total >= _MOST_TILES_OF_A_SEQUENCE and int(tiles.max()) > _MOST_TILES_OF_A_SEQUENCE:
        longest = int(tiles.argmax())
        most = _MOST_TILES_OF_A_SEQUENCE * rows // variant.gqa
        raise ArgumentError(
            "query_start_loc",
            f"{int(queries[longest])} query tokens long in sequence {longest}",
            f"at most {most} tokens, or {_MOST_TILES_OF_A_SEQUENCE} tiles of {rows} rows",
        )
    if total >> INDEX_BITS:
        raise ArgumentError("query_start_loc", f"{total} tiles long", f"fewer than {1 << INDEX_BITS} tiles")
    sequences = np.arange(len(queries)).repeat(tiles)
    above = ends.take(sequences)
    above -= np.arange(total)
    return sequences, above


def _steps(
    queries: Integers,
    keys: Integers,
    sequence: Integers,
    above: Integers,
    variant: PrefillVariant,
    window: int,
) -> Integers:
    """Key steps of each tile."""
    gqa, rows, step = variant.gqa, variant.block_rows, variant.key_tile
    context = (keys - queries).take(sequence)
    # ceil((tile + 1) * rows / gqa) tokens precede the end of a tile; the sequence may end before.
    end = above * rows
    if gqa > 1:
        end += gqa - 1
        end //= gqa
    end += context
    np.minimum(end, keys.take(sequence), out=end)
    if window:
        begin = (above - 1) * rows
        begin //= gqa
        begin += context
        begin -= window - 1
        np.maximum(begin, 0, out=begin)
        begin //= step
        begin *= step
        end -= begin
    end += step - 1
    end //= step
    return end


def _split(
    table: NDArray[np.int32],
    tile: Integers,
    steps: Integers,
    split: Integers,
    load: float,
) -> NDArray[np.int32]:
    """The sorted rows, those of the tiles ``split`` cut into segments."""
    if len(split) > _MOST_SPLIT_TILES:
        raise ArgumentError("target_workgroups", "too large for this batch", f"{_MOST_SPLIT_TILES} split tiles at most")
    whole = steps.take(split)
    segments = whole / load
    np.ceil(segments, out=segments)
    np.minimum(segments, whole // MIN_SEGMENT_STEPS, out=segments)
    np.minimum(segments, PLAN_MAX_SEGMENTS, out=segments)
    counts = np.empty(len(tile), dtype=np.int64)
    counts.fill(1)
    counts[split] = segments
    tile[split] += np.arange(0, len(split) << 16, 1 << 16)
    slots = np.empty(len(tile), dtype=np.int64)
    slots.fill(-1)
    slots[split] = segments.cumsum() - segments
    table[:, 1] = tile
    table[:, 3] = slots

    # Two different quotients by at most 16 segments differ by 1/240 and more, so that their 256ths differ too.
    steps <<= 8
    steps //= counts
    order = largest_first(steps)
    counts = counts.take(order)
    table = table.take(order, axis=0)
    # What each row then adds, its own number, is its segment and the number of its tile's first row.
    first = counts.cumsum()
    first -= counts
    table[:, 2] = (counts << 16) - first
    plan = table.repeat(counts, axis=0)
    plan[:, 2] += np.arange(len(plan), dtype=np.int32)
    return plan
