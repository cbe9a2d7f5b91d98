"""The rules of the prefill planner, line by line in NumPy: what `rdna_registry.plan_prefill` is measured against.

It neither checks its arguments nor remembers a batch, and it has one form for every size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rdna_registry import MIN_SEGMENT_STEPS, PLAN_MAX_SEGMENTS, PrefillVariant


def plan_plainly(
    query_start_loc: NDArray[np.int32],
    seq_lens: NDArray[np.int32],
    variant: PrefillVariant,
    window: int,
    target_workgroups: int,
    head_group: int = 0,
) -> tuple[NDArray[np.int32], int]:
    """The plan and head group that `rdna_registry.plan_prefill` gives for the same valid arguments.

    ``query_start_loc`` int32 ``[sequences + 1]``, ``seq_lens`` int32 ``[sequences]``, in tokens; the plan is int32
    ``[entries, 4]``.
    """
    gqa, rows, key_tile = variant.gqa, variant.block_rows, variant.key_tile
    query_lens = np.diff(query_start_loc).astype(np.int64)
    contexts = np.maximum(seq_lens, query_lens) - query_lens

    tiles = -(-query_lens * gqa // rows)
    sequence = np.repeat(np.arange(len(tiles)), tiles)
    starts = np.cumsum(tiles) - tiles
    tile = tiles[sequence] - 1 - (np.arange(len(sequence)) - starts[sequence])

    context = contexts[sequence]
    last = np.minimum(query_lens[sequence] - 1, ((tile + 1) * rows - 1) // gqa)
    begin = np.zeros_like(last)
    if window:
        begin = np.maximum(0, context + tile * rows // gqa - window + 1) // key_tile * key_tile
    steps = -(-(context + last + 1 - begin) // key_tile)

    load = max(variant.num_kv_heads * steps.sum() / target_workgroups, MIN_SEGMENT_STEPS)
    wanted = np.minimum(np.ceil(steps / load).astype(np.int64), steps // MIN_SEGMENT_STEPS)
    segments = np.where(steps > load, np.clip(wanted, 1, PLAN_MAX_SEGMENTS), 1)
    split = segments > 1
    split_tile = np.where(split, np.cumsum(split) - 1, 0)
    slots = np.where(split, segments, 0)
    slot = np.where(split, np.cumsum(slots) - slots, -1)

    entry = np.repeat(np.arange(len(tile)), segments)
    segment = np.arange(len(entry)) - (np.cumsum(segments) - segments)[entry]
    columns = [sequence[entry], tile[entry] | split_tile[entry] << 16, segment | segments[entry] << 16, slot[entry]]
    order = np.argsort(-(steps / segments)[entry], kind="stable")
    plan = np.stack(columns, axis=1)[order].astype(np.int32)
    return plan, variant.num_kv_heads if split.any() else head_group
