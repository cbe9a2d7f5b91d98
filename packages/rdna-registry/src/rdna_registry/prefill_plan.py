"""The prefill planner: which workgroup takes which query rows and keys of which sequence of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdna_registry.arguments import INT32_MAX, as_int
from rdna_registry.lengths import PlanCache, as_lengths, content_of, query_lengths
from rdna_registry.prefill_plan_few import plan_few
from rdna_registry.prefill_plan_many import plan_many
from rdna_registry.prefill_variant import PrefillVariant

_FEW_SEQUENCES = 16
_FEW_TILES = 20

_Plan = tuple[NDArray[np.int32], int]
_plans: PlanCache[_Plan] = PlanCache()


def plan_prefill(
    query_start_loc: ArrayLike,
    seq_lens: ArrayLike,
    variant: PrefillVariant,
    window: int,
    target_workgroups: int,
    head_group: int = 0,
) -> _Plan:
    """The work list of a batch, int32 ``[entries, 4]``, and its head group.

    ``query_start_loc`` has the first query token of each sequence and the end of the last, ``seq_lens`` the keys of
    each sequence with its query tokens (fewer count as these). ``window`` is in keys, 0 for none;
    ``target_workgroups`` is how many workgroups keep the device busy, see `prefill_target_workgroups`.

    A row is one (sequence, tile, KV segment), which is run for every kv head: ``{sequence, tile | split_tile << 16,
    segment | segments << 16, first partials slot or -1}``. Rows are sorted by their work, the largest first. The head
    group is the kv heads of the variant where a tile is split, else what was asked for.

    A batch with the same contents as the last one of this variant and these settings is not planned again; what is
    returned belongs to the caller either way. TypeError or ValueError, by name, for arguments that are no batch, and
    for one with more than 65536 tiles in a sequence.
    """
    if not isinstance(variant, PrefillVariant):
        raise TypeError(f"variant is {variant!r}; a PrefillVariant is needed")
    starts = as_lengths("query_start_loc", query_start_loc)
    lengths = as_lengths("seq_lens", seq_lens)
    window = as_int("window", window, 0, INT32_MAX)
    target = as_int("target_workgroups", target_workgroups, 1, INT32_MAX)
    head_group = as_int("head_group", head_group, 0, INT32_MAX)
    settings = (window, target, head_group)
    content = content_of(starts, lengths)
    planned = _plans.get(variant, settings, content)
    if planned is None:
        planned = _plan(starts, lengths, variant, window, target, head_group)
        _plans.put(variant, settings, content, planned)
    return planned[0].copy(), planned[1]


def _plan(
    starts: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    variant: PrefillVariant,
    window: int,
    target: int,
    head_group: int,
) -> _Plan:
    queries, keys = query_lengths(starts, lengths)
    np.maximum(keys, queries, out=keys)
    few = len(queries) <= _FEW_SEQUENCES
    if few:
        tokens = queries.tolist()
        few = sum(tokens) * variant.gqa // variant.block_rows + len(tokens) <= _FEW_TILES
    if few:
        plan, split = plan_few(tokens, keys.tolist(), variant, window, target)
    else:
        plan, split = plan_many(queries, keys, variant, window, target)
    return plan, variant.num_kv_heads if split else head_group
