"""The decode planner: a work list that shares out ragged batches evenly, of a length that a captured graph can keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdna_registry.arguments import INT32_MAX, ArgumentError, as_int
from rdna_registry.decode_variant import KernelVariant
from rdna_registry.lengths import PlanCache, as_lengths, check_lengths, content_of
from rdna_registry.ordering import largest_first

_MOST_TARGET = (1 << 15) - 1
_plans: PlanCache[NDArray[np.int32]] = PlanCache()


def plan_decode(
    query_lens: ArrayLike,
    seq_lens_upper_bound: ArrayLike,
    variant: KernelVariant,
    window: int,
    target_workgroups: int,
) -> NDArray[np.int32]:
    """The work list of a decode batch, int32 ``[decode_plan_capacity(...), 4]``, padded with rows of -1.

    ``query_lens`` are the query tokens of each sequence, up to ``variant.max_query_len``; ``seq_lens_upper_bound``
    bounds its keys, for the exact length is known to the device only. ``window`` is in keys, 0 for none;
    ``target_workgroups`` is how many workgroups keep the device busy.

    A row is ``{sequence, segment | segments << 16, first key block, key blocks}``, run by `workgroups_per_row`
    workgroups; a key block has `key_block` keys. Blocks are counted from the first one that the exact length and the
    window leave, which is block 0 without a window: so a plan is right for every length up to the bound. Segments of a
    sequence stand in consecutive rows, and a row's own number is its partials slot. Sequences with more blocks come
    first, so that split ones, and with them the slots in use, are at the front. A sequence with query tokens has a row
    even where it has no keys.

    Segments share the blocks of a sequence to within one block, and no row has more blocks than the mean of the
    target's workgroups, rounded up, unless segments would fall below ``variant.min_segment_blocks``. Split sequences
    times workgroups_per_row stay below the target, their rows times workgroups_per_row below twice the target.

    A batch with the same contents as the last one of this variant and these settings is not planned again; the array
    belongs to the caller either way. TypeError or ValueError, by name, for arguments that are no batch.
    """
    if not isinstance(variant, KernelVariant):
        raise TypeError(f"variant is {variant!r}; a KernelVariant is needed")
    queries = as_lengths("query_lens", query_lens)
    lengths = as_lengths("seq_lens_upper_bound", seq_lens_upper_bound)
    window = as_int("window", window, 0, INT32_MAX)
    target = as_int("target_workgroups", target_workgroups, 1, _MOST_TARGET)
    settings = (window, target)
    content = content_of(queries, lengths)
    planned = _plans.get(variant, settings, content)
    if planned is None:
        planned = _plan(queries, lengths, variant, window, target)
        _plans.put(variant, settings, content, planned)
    return planned.copy()


def key_block(variant: KernelVariant) -> int:
    """Keys that a workgroup takes at a time: a tile of 16 for each wave, or for each `Build.waves_per_tile` waves."""
    return variant.build.key_block


def workgroups_per_row(variant: KernelVariant) -> int:
    """Workgroups that run a row of a plan: one for each (kv head, row group)."""
    return variant.num_kv_heads * variant.row_groups


def decode_plan_capacity(num_seqs: int, variant: KernelVariant, target_workgroups: int) -> int:
    """Rows of any plan for ``num_seqs`` sequences, whatever their lengths."""
    return num_seqs + (target_workgroups - 1) // workgroups_per_row(variant)


def _plan(
    given_query_lens: NDArray[np.integer[Any]],
    given_seq_lens: NDArray[np.integer[Any]],
    variant: KernelVariant,
    window: int,
    target: int,
) -> NDArray[np.int32]:
    query_lens, seq_lens = given_query_lens.astype(np.int64), given_seq_lens.astype(np.int64)
    _check(query_lens, seq_lens, variant)
    size = key_block(variant)
    blocks = seq_lens + (size - 1)
    blocks //= size
    if window:
        # The keys that a sequence's tokens see, window + tokens - 1, may begin at the last key of a block.
        span = query_lens + (window - 2 + size - 1)
        span //= size
        span += 1
        np.minimum(blocks, span, out=blocks)
    plan = np.full((decode_plan_capacity(len(blocks), variant, target), 4), -1, dtype=np.int32)

    active = np.count_nonzero(query_lens)
    if active < len(blocks):
        blocks[query_lens == 0] = -1  # last in the order, and cut off
    order = largest_first(blocks + 1)[:active]
    blocks = blocks.take(order)

    # Segments of at most the mean, blocks * workgroups / target, and of min_segment_blocks at least.
    work = int(np.add.reduce(blocks)) * workgroups_per_row(variant)
    segments = blocks * target
    segments += work - 1
    segments //= max(work, 1)
    np.minimum(segments, blocks // variant.min_segment_blocks, out=segments)
    np.maximum(segments, 1, out=segments)

    rows = int(np.add.reduce(segments))
    segment = np.arange(rows) - (segments.cumsum() - segments).repeat(segments)
    counts = segments.repeat(segments)
    shared = blocks.repeat(segments)
    first = segment * shared // counts
    plan[:rows, 0] = order.repeat(segments)
    plan[:rows, 1] = segment | counts << 16
    plan[:rows, 2] = first
    plan[:rows, 3] = (segment + 1) * shared // counts - first
    return plan


def _check(query_lens: NDArray[np.int64], seq_lens: NDArray[np.int64], variant: KernelVariant) -> None:
    if not query_lens.size:
        raise ArgumentError("query_lens", "empty", "at least one sequence")
    if query_lens.size != seq_lens.size:
        given = f"{seq_lens.size} long"
        raise ArgumentError("seq_lens_upper_bound", given, f"as long as query_lens, which has {query_lens.size}")
    # The sign bit of any length, and any bit past the 31st, survive in the union.
    if not 0 <= int(np.bitwise_or.reduce(query_lens | seq_lens)) <= INT32_MAX:
        check_lengths("query_lens", query_lens)
        check_lengths("seq_lens_upper_bound", seq_lens)
    longest = int(np.maximum.reduce(query_lens))
    if longest > variant.max_query_len:
        raise ArgumentError("query_lens", longest, f"0 to {variant.max_query_len}, as the variant serves")
