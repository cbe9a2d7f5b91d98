"""Entries to try a build with."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import defaultdict

from rdna_registry.builds import Build
from rdna_registry.decode_builds import short_builds
from rdna_registry.decode_lookup import entries_of
from rdna_registry.decode_rule import derive
from rdna_registry.decode_tables import DecodeShape
from rdna_registry.decode_variant import KernelVariant, Layout
from rdna_registry.dtypes import DType

_GROUP_SIZES = (1, 2, 3, 5, 8, 12, 32)
_KV_HEADS = (1, 2, 4, 8)
_QUERY_LENS = (1, 2, 3, 4, 6, 8, 9, 33, 127)
_WINDOWS = (0, 512)
_PAGE = 48  # of no tuned row


def example_entries(build: Build) -> tuple[KernelVariant, ...]:
    """The tuned entries that a build serves, or, where no tuned row uses it, derived ones from a fixed set of shapes.

    The build's head size need not be served yet. One of `decode_builds.short_builds` has entries of given knobs. Empty
    for a build that no entry uses.
    """
    if dataclasses.replace(build, dtype=DType.fp16) in short_builds(build.head_size):
        return _given(build)
    return entries_of(build) or _derived(build.head_size, build.dtype).get(build, ())


def _given(build: Build) -> tuple[KernelVariant, ...]:
    shapes = itertools.product(_GROUP_SIZES, _KV_HEADS, _QUERY_LENS, (1, 4), _WINDOWS, (0, 1))
    entries = (
        KernelVariant(
            head_size=build.head_size,
            num_q_heads=gqa * num_kv_heads,
            num_kv_heads=num_kv_heads,
            max_query_len=query_len,
            page_size=_PAGE,
            layout=Layout.HND,
            max_segments=segments,
            row_groups=-(-gqa * query_len // build.rows_padded),
            waves=build.waves,
            head_dim_split=build.head_dim_split,
            prefetch=build.prefetch,
            v_in_lds=build.v_in_lds,
            dtype=build.dtype,
            window=window,
            batched=batched,
        )
        for gqa, num_kv_heads, query_len, segments, window, batched in shapes
    )
    return tuple(entry for entry in entries if entry.build == build)


@functools.cache
def _derived(head_size: int, dtype: DType) -> dict[Build, tuple[KernelVariant, ...]]:
    found: dict[Build, list[KernelVariant]] = defaultdict(list)
    shapes = itertools.product(_GROUP_SIZES, _KV_HEADS, _QUERY_LENS, _WINDOWS, (0, 1))
    for gqa, num_kv_heads, query_len, window, batched in shapes:
        heads = gqa * num_kv_heads
        shape = DecodeShape(heads, num_kv_heads, head_size, query_len, _PAGE, Layout.HND, window, dtype, batched)
        derived = derive(shape, None)
        if derived is not None:
            found[derived.variant.build].append(derived.variant)
    return {build: tuple(entries) for build, entries in found.items()}
