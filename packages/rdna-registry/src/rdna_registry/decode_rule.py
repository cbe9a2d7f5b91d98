"""The rule that gives an entry to a shape without a tuned row, from the tuned rows next to it."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from rdna_registry.builds import Build
from rdna_registry.decode_builds import builds_of, tuned_head_size, wide_builds
from rdna_registry.decode_modelled import preferred_rows
from rdna_registry.decode_tables import DecodeShape, TunedRow, tuned_rows
from rdna_registry.decode_variant import ROW_TILE, KernelVariant, Layout
from rdna_registry.targets import DEFAULT_TARGET

MOST_SEGMENTS = 16
"""Most KV segments that the rule gives to a (kv head, row group)."""

LONGEST_TUNED = 8
"""Most query tokens of a tuned row."""


class _Form(NamedTuple):
    build: Build
    row_groups: int


class Derived(NamedTuple):
    """An entry made by the rule, the row that its knobs come from, and the rows that its workgroups come from."""

    variant: KernelVariant
    nearest: TunedRow
    neighbours: tuple[TunedRow, ...]


def derive(shape: DecodeShape, modelled_for: str | None = DEFAULT_TARGET) -> Derived | None:
    """The entry that the rule makes for a shape, or None where no build of this head size serves it.

    ``modelled_for`` is the target whose modelled rows count, None for none of them.

    1. Neighbours are the tuned rows of the same head size and query length, for one sequence with the knobs of their
       modelled rows where these have a clear gain. A head size without tuned rows takes
       those, as published, of the head size at the smallest ratio (`decode_builds.tuned_head_size`); a query longer
       than `LONGEST_TUNED` takes those of that length. Rows of the same kind of window (none, or some) come first, then
       those at the smallest distance |log2 of the ratio of kv heads| + |log2 of the ratio of group sizes| + |log2 of
       the ratio of windows| / 2, then those with the nearest page.
    2. The nearest neighbour whose build (for this head size, with fewer padded rows if fewer do) is in
       `decode_builds.builds_of` gives waves, head_dim_split, prefetch, v_in_lds and min_segment_blocks. A dot-product
       row does not, not even to its own shape: it was tuned for a workgroup for each q head, and of the matrix form's,
       one for each kv head, it would have too few.
    3. A neighbour of the same heads gives row_groups and max_segments too; one of the same group size gives row_groups.
       Otherwise row_groups is the fewest that fit the build's rows.
    4. A query longer than `LONGEST_TUNED` has the fewest row groups that any build of the head size allows, the
       neighbour's build or a wide one: the queries of a group share each read of K and V. Segments are then no shorter
       in keys than the neighbour's.
    5. max_segments makes segments * kv heads * row groups about what the two nearest head configurations have (their
       geometric mean; a dot-product row counts as tuned, segments * q heads), at least 1 and at most `MOST_SEGMENTS`.
    6. With a window, max_segments is at most what the keys of a window can fill.
    """
    if not builds_of(shape.head_size):
        return None
    ordered = _neighbours(shape, modelled_for)
    for nearest in ordered:
        form = _form(shape, nearest.variant)
        if form is not None:
            break
    else:
        return None if modelled_for is None else derive(shape, None)
    near = nearest.variant
    neighbours = _two_configurations(nearest, ordered)
    if _same_heads(shape, near) and form.row_groups == near.row_groups:
        segments = near.max_segments
        neighbours = (nearest,)
    else:
        workgroups = math.prod(_workgroups(row.variant) for row in neighbours) ** (1 / len(neighbours))
        segments = round(workgroups / (shape.num_kv_heads * form.row_groups))
    least = _least_blocks(near, form.build)
    segments = max(1, min(segments, MOST_SEGMENTS, _segments_of_window(shape, form.build, least)))
    variant = KernelVariant(
        head_size=shape.head_size,
        num_q_heads=shape.num_q_heads,
        num_kv_heads=shape.num_kv_heads,
        max_query_len=shape.max_query_len,
        page_size=shape.page_size,
        layout=Layout.HND,
        max_segments=segments,
        row_groups=form.row_groups,
        min_segment_blocks=least,
        waves=form.build.waves,
        head_dim_split=form.build.head_dim_split,
        prefetch=form.build.prefetch,
        v_in_lds=form.build.v_in_lds,
        dtype=shape.dtype,
        window=shape.window,
        batched=shape.batched,
    )
    return Derived(variant, nearest, neighbours)


def _neighbours(shape: DecodeShape, modelled_for: str | None) -> list[TunedRow]:
    def order(row: TunedRow) -> tuple[bool, float, int]:
        near = row.variant
        distance = _octaves(near.num_kv_heads, shape.num_kv_heads) + _octaves(near.gqa, shape.gqa)
        if shape.window and near.window:
            distance += _octaves(near.window, shape.window) / 2
        return bool(near.window) != bool(shape.window), round(distance, 9), abs(near.page_size - shape.page_size)

    head_size, query_len = tuned_head_size(shape.head_size), min(shape.max_query_len, LONGEST_TUNED)
    own = head_size == shape.head_size  # modelled knobs are of builds that another head size may not have
    known = tuned_rows() if modelled_for is None or not own else preferred_rows(shape.batched, modelled_for)
    rows = (row for row in known if row.variant.head_size == head_size)
    return sorted((row for row in rows if row.variant.max_query_len == query_len), key=order)


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


def _form(shape: DecodeShape, near: KernelVariant) -> _Form | None:
    """The build and row groups that a neighbour gives to a shape, or None where there is no such build."""
    if near.dot_product:
        return None
    rows = shape.gqa * shape.max_query_len
    like = dataclasses.replace(near.build, head_size=shape.head_size)
    if shape.max_query_len > LONGEST_TUNED:
        return _fewest_groups(rows, (like, *wide_builds(shape.head_size)))
    groups = near.row_groups if shape.gqa == near.gqa else -(-rows // near.rows_padded)
    build = dataclasses.replace(like, rows_padded=_padded(rows, groups))
    return _Form(build, groups) if build in builds_of(shape.head_size) else None


def _fewest_groups(rows: int, kinds: tuple[Build, ...]) -> _Form | None:
    most = max(build.rows_padded for build in kinds)
    for groups in range(-(-rows // most), -(-rows // ROW_TILE) + 1):
        for kind in kinds:
            build = dataclasses.replace(kind, rows_padded=_padded(rows, groups))
            if build in builds_of(build.head_size):
                return _Form(build, groups)
    return None


def _padded(rows: int, groups: int) -> int:
    rows_per_group = -(-rows // groups)
    return -(-rows_per_group // ROW_TILE) * ROW_TILE


def _least_blocks(near: KernelVariant, build: Build) -> int:
    return -(-near.min_segment_blocks * near.build.key_block // build.key_block)


def _segments_of_window(shape: DecodeShape, build: Build, least_blocks: int) -> int:
    if not shape.window:
        return MOST_SEGMENTS
    block = build.key_block
    # The tokens of a call see window + max_query_len - 1 keys in all, and these may begin at the last key of a block.
    blocks = -(-(shape.window + shape.max_query_len - 2) // block) + 1
    return max(1, blocks // least_blocks)
