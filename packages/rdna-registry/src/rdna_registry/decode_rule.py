"""The rule that gives an entry to a shape without a tuned row, from the tuned rows next to it."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

from rdna_registry.builds import Build
from rdna_registry.decode_tables import DecodeShape, TunedRow, tuned_rows
from rdna_registry.decode_variant import ROW_TILE, KernelVariant

MOST_SEGMENTS = 16
"""Most KV segments that the rule gives to a (kv head, row group)."""


class Derived(NamedTuple):
    """An entry made by the rule, the row that its knobs come from, and the rows that its workgroups come from."""

    variant: KernelVariant
    nearest: TunedRow
    neighbours: tuple[TunedRow, ...]


def derive(shape: DecodeShape) -> Derived | None:
    """The entry that the rule makes for a shape, or None where no tuned build of this head size serves it.

    1. Neighbours are the tuned rows of the same head size and query length. Rows of the same kind of window (none, or
       some) come first, then those at the smallest distance |log2 of the ratio of kv heads| + |log2 of the ratio of
       group sizes| + |log2 of the ratio of windows| / 2, then those with the nearest page.
    2. The nearest neighbour whose build (with fewer padded rows, if fewer do) is one that tuned rows need gives waves,
       head_dim_split, prefetch, v_in_lds, dot_product and min_segment_blocks.
    3. A neighbour of the same heads gives row_groups and max_segments too; one of the same group size gives row_groups.
       Otherwise row_groups is the fewest that fit the build's rows.
    4. max_segments makes segments * kv heads * row groups about what the two nearest head configurations have (their
       geometric mean), at least 1 and at most `MOST_SEGMENTS`.
    5. With a window, max_segments is at most what the keys of a window can fill.
    """
    ordered = _neighbours(shape)
    for nearest in ordered:
        groups = _row_groups(shape, nearest.variant)
        if groups is not None:
            break
    else:
        return None
    near = nearest.variant
    neighbours = _two_configurations(nearest, ordered)
    if _same_heads(shape, near):
        segments = near.max_segments
        neighbours = (nearest,)
    else:
        workgroups = math.prod(_workgroups(row.variant) for row in neighbours) ** (1 / len(neighbours))
        segments = round(workgroups / (shape.num_kv_heads * groups))
    segments = max(1, min(segments, MOST_SEGMENTS, _segments_of_window(shape, near)))
    variant = dataclasses.replace(
        near,
        num_q_heads=shape.num_q_heads,
        num_kv_heads=shape.num_kv_heads,
        page_size=shape.page_size,
        max_segments=segments,
        row_groups=groups,
        dtype=shape.dtype,
        window=shape.window,
        batched=shape.batched,
    )
    return Derived(variant, nearest, neighbours)


def _neighbours(shape: DecodeShape) -> list[TunedRow]:
    def order(row: TunedRow) -> tuple[bool, float, int]:
        near = row.variant
        distance = _octaves(near.num_kv_heads, shape.num_kv_heads) + _octaves(near.gqa, shape.gqa)
        if shape.window and near.window:
            distance += _octaves(near.window, shape.window) / 2
        return bool(near.window) != bool(shape.window), round(distance, 9), abs(near.page_size - shape.page_size)

    rows = (row for row in tuned_rows() if row.variant.head_size == shape.head_size)
    return sorted((row for row in rows if row.variant.max_query_len == shape.max_query_len), key=order)


def _octaves(one: int, other: int) -> float:
    return abs(math.log2(one / other))


def _two_configurations(nearest: TunedRow, ordered: list[TunedRow]) -> tuple[TunedRow, ...]:
    heads = (nearest.variant.num_q_heads, nearest.variant.num_kv_heads)
    for row in ordered:
        if (row.variant.num_q_heads, row.variant.num_kv_heads) != heads:
            return nearest, row
    return (nearest,)


def _same_heads(shape: DecodeShape, near: KernelVariant) -> bool:
    return (shape.num_q_heads, shape.num_kv_heads) == (near.num_q_heads, near.num_kv_heads)


def _workgroups(variant: KernelVariant) -> int:
    heads = variant.num_q_heads if variant.dot_product else variant.num_kv_heads * variant.row_groups
    return heads * variant.max_segments


def _row_groups(shape: DecodeShape, near: KernelVariant) -> int | None:
    rows = shape.gqa * shape.max_query_len
    if near.dot_product:
        groups = 1
    elif shape.gqa == near.gqa:
        groups = near.row_groups
    else:
        groups = -(-rows // near.rows_padded)
    rows_per_group = -(-rows // groups)
    padded = -(-rows_per_group // ROW_TILE) * ROW_TILE
    build = dataclasses.replace(near.build, rows_padded=padded)
    return groups if build in _tuned_builds() else None


@functools.cache
def _tuned_builds() -> frozenset[Build]:
    return frozenset(row.variant.build for row in tuned_rows())


def _segments_of_window(shape: DecodeShape, near: KernelVariant) -> int:
    if not shape.window:
        return MOST_SEGMENTS
    block = 16 * near.waves // max(near.head_dim_split, 1)
    # The tokens of a call see window + max_query_len - 1 keys in all, and these may begin at the last key of a block.
    blocks = -(-(shape.window + shape.max_query_len - 2) // block) + 1
    return max(1, blocks // near.min_segment_blocks)
