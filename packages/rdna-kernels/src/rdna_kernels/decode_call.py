"""A decode call worked out from layouts alone: checks, registry entry, build, grid and the arguments that never change.

Everything here depends on shapes, strides, dtypes and knobs, not on addresses or values; so it is cached by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rdna_registry import ArgumentError as RegistryError
from rdna_registry import DType, KernelVariant, as_dtype, provenance, select

from rdna_kernels.decode_arguments import FEATURES_SUFFIX
from rdna_kernels.decode_features import Features, check_features
from rdna_kernels.decode_values import MAX_SEQ_LEN
from rdna_kernels.errors import ArgumentError
from rdna_kernels.layout import (
    ALIGNMENT,
    Layout,
    dtype_name,
    element_strides,
    extent,
    require_aligned_strides,
    require_apart,
    require_dense_last,
    require_dtype,
    require_shape,
)
from rdna_kernels.scratch import ScratchNeed

_LARGEST_WINDOW = 2**31 - 1
_MOST_WORKGROUPS = 65535  # along y and z
_MOST_SLOTS = 2**31 - 1
_MOST_TOKEN_STRIDE = 2**26  # elements; kernels address the 16 keys of a tile with 32-bit byte offsets
_MOST_STRIDE = 2**32 - 1  # of 16 bytes, and page numbers of the block table
_HND = 1
_INSTEAD = {
    "max_query_len": "split a longer query into chunks",
    "num_q_heads": "or call for some query heads of each kv head at a time",
}


@dataclass(frozen=True)
class DecodeCall:
    """What a call of these layouts launches.

    `kernel_suffix` follows the build's name in that of its kernel; `grid` counts workgroups, `block` threads;
    `constants` are the kernel arguments that depend on layouts and knobs only; `extents` are the bytes from first to
    last of each array that the call may have; `default_scale` is 1 / sqrt(head_size).
    """

    variant: KernelVariant
    build_name: str
    kernel_suffix: str
    provenance: str
    grid: tuple[int, int, int]
    block: int
    need: ScratchNeed
    constants: Mapping[str, int]
    extents: Mapping[str, int]
    out_shape: tuple[int, int, int]
    num_pages: int
    page_size: int
    default_scale: float

    @property
    def workgroups(self) -> int:
        """Workgroups of the grid."""
        return math.prod(self.grid)


@lru_cache(maxsize=4096)
def decode_call(
    q: Layout,
    kv_cache: Layout,
    block_table: Layout,
    seq_lens: Layout,
    out: Layout | None,
    max_query_len: int,
    window: int,
    variant: KernelVariant | None,
    target: str,
    features: Features = Features(),  # noqa: B008 - a tuple
) -> DecodeCall:
    """Check the layouts of a decode call and work out its launch on a target; cached, and errors are not.

    Shapes: q and out `[num_seqs * max_query_len, num_q_heads, head_size]`, kv_cache
    `[num_pages, num_kv_heads, page_size, 2 * head_size]`, block_table int32 `[num_seqs, columns]`, seq_lens int32
    `[num_seqs]`; `features` those of the optional arrays. ArgumentError for whatever is not allowed.
    """
    if max_query_len < 1:
        raise ArgumentError(f"max_query_len is {max_query_len}; a sequence has at least 1 query token")
    if not 0 <= window <= _LARGEST_WINDOW:
        raise ArgumentError(f"window is {window}; it is a number of keys, 0 (no window) to {_LARGEST_WINDOW}")
    require_shape("q", q, (None, None, None), "[num_seqs * max_query_len, num_q_heads, head_size]")
    require_shape("kv_cache", kv_cache, (None, None, None, None), "[num_pages, num_kv_heads, page_size, 2 * head_size]")
    require_shape("seq_lens", seq_lens, (None,), "[num_seqs]")
    rows, num_q_heads, head_size = q[0]
    num_pages, num_kv_heads, page_size, kv_row = kv_cache[0]
    (num_seqs,) = seq_lens[0]
    require_shape("block_table", block_table, (num_seqs, None), "[num_seqs, columns]")
    dtype = _element_type(q)
    require_dtype("kv_cache", kv_cache, dtype.value)
    require_dtype("block_table", block_table, "int32")
    require_dtype("seq_lens", seq_lens, "int32")
    if kv_row != 2 * head_size:
        raise ArgumentError(
            f"kv_cache has rows of {kv_row} elements; K and V of head size {head_size} (from q) make 2 * {head_size}"
        )
    if not head_size or not page_size:
        raise ArgumentError(
            f"q has heads of {head_size} elements and kv_cache pages of {page_size} tokens; both have some"
        )
    _require_heads(num_q_heads, num_kv_heads)
    if rows != num_seqs * max_query_len:
        raise ArgumentError(
            f"q has {rows} rows; {num_seqs} sequences (from seq_lens) with max_query_len {max_query_len} make "
            f"{num_seqs * max_query_len}"
        )
    heads = num_q_heads, num_kv_heads, head_size
    choice = _choice(*heads, max_query_len, page_size, window, dtype, num_seqs > 1, target)
    if out is not None:
        require_shape("out", out, (rows, num_q_heads, head_size), "[num_seqs * max_query_len, num_q_heads, head_size]")
        require_dtype("out", out, dtype.value)
    else:
        item = dtype.itemsize
        out = (q[0], (num_q_heads * head_size * item, head_size * item, item), q[2])
    for name, layout in (("q", q), ("kv_cache", kv_cache), ("out", out)):
        require_dense_last(name, layout, dtype.itemsize)
        require_aligned_strides(name, layout)
        require_apart(name, layout, dtype.itemsize)
    for name, layout in (("block_table", block_table), ("seq_lens", seq_lens)):
        require_dense_last(name, layout, 4)
        require_apart(name, layout, 4)

    check_features(features, rows, num_q_heads)

    chosen = choice if variant is None else _given(variant, choice)
    q_token, q_head, _ = _argument_strides("q", q, ALIGNMENT)
    out_token, out_head, _ = _argument_strides("out", out, ALIGNMENT)
    kv_block, kv_head, kv_token, _ = _argument_strides("kv_cache", kv_cache, ALIGNMENT)
    segments = (
        chosen.max_segments if features.plan is not None else _most_segments(chosen, block_table[0][1] * page_size)
    )
    grid = (segments, num_kv_heads * chosen.row_groups, num_seqs)
    (partial_rows, width), _, counters = chosen.scratch_shapes()
    partial_rows *= num_seqs
    if features.plan is not None:
        grid = (features.plan[0][0], grid[1], min(num_seqs, 1))
        partial_rows = grid[0] * grid[1] * -(-(num_q_heads // num_kv_heads * max_query_len) // chosen.row_groups)
    _require_launchable(grid, num_seqs, partial_rows, kv_token * (ALIGNMENT // dtype.itemsize))
    return DecodeCall(
        variant=chosen,
        build_name=chosen.build.name,
        kernel_suffix=FEATURES_SUFFIX if features != Features() else "",
        provenance=provenance(chosen, target),
        grid=grid,
        block=chosen.build.waves * 32,
        need=ScratchNeed(partial_rows, width, num_seqs * counters),
        constants={
            "q_stride_token": q_token,
            "q_stride_head": q_head,
            "out_stride_token": out_token,
            "out_stride_head": out_head,
            "kv_stride_block": kv_block,
            "kv_stride_head": kv_head,
            "kv_stride_token": kv_token,
            "block_table_stride": _argument_strides("block_table", block_table, 4)[0],
            "table_columns": block_table[0][1],
            "num_kv_heads": num_kv_heads,
            "gqa": num_q_heads // num_kv_heads,
            "max_query_len": max_query_len,
            "page_size": page_size,
            "window": min(window, MAX_SEQ_LEN),
            "row_groups": chosen.row_groups,
            "max_segments": segments,
            "min_segment_blocks": chosen.min_segment_blocks,
        },
        extents={
            "q": extent(q, dtype.itemsize),
            "kv_cache": extent(kv_cache, dtype.itemsize),
            "block_table": extent(block_table, 4),
            "seq_lens": extent(seq_lens, 4),
            "out": extent(out, dtype.itemsize),
            **{name: extent(layout, 4) for name, layout in _optional(features)},
        },
        out_shape=(rows, num_q_heads, head_size),
        num_pages=num_pages,
        page_size=page_size,
        default_scale=1.0 / math.sqrt(head_size),
    )


def _most_segments(variant: KernelVariant, table_keys: int) -> int:
    """Segments of a sequence that fills its row of the block table: more workgroups would never have work."""
    blocks = -(-table_keys // variant.build.key_block)
    return max(1, min(variant.max_segments, blocks // variant.min_segment_blocks))


def _optional(features: Features) -> list[tuple[str, Layout]]:
    named = zip(("sinks", "alibi_slopes", "plan", "lse"), features[:4], strict=True)
    return [(name, layout) for name, layout in named if layout is not None]


def _element_type(q: Layout) -> DType:
    try:
        dtype = as_dtype(q[2])
    except ValueError:
        raise ArgumentError(
            f"q has dtype {dtype_name(q[2])}; decode serves float16 and bfloat16 (NumPy: ml_dtypes.bfloat16)"
        ) from None
    require_dtype("q", q, dtype.value)
    return dtype


def _require_heads(num_q_heads: int, num_kv_heads: int) -> None:
    if num_kv_heads < 1 or num_q_heads < 1 or num_q_heads % num_kv_heads:
        raise ArgumentError(
            f"q has {num_q_heads} heads and kv_cache {num_kv_heads}; the query heads must be a multiple of the kv heads"
        )


def _require_launchable(grid: tuple[int, int, int], num_seqs: int, slots: int, kv_stride_token: int) -> None:
    if max(grid[1:]) > _MOST_WORKGROUPS:
        raise ArgumentError(
            f"{num_seqs} sequences make a grid of {grid[0]} x {grid[1]} x {grid[2]} workgroups; a dimension has at "
            f"most {_MOST_WORKGROUPS}: call for parts of the batch"
        )
    if slots > _MOST_SLOTS:
        raise ArgumentError(
            f"{num_seqs} sequences need {slots} rows of partial results; kernels count at most {_MOST_SLOTS}: call for "
            "parts of the batch"
        )
    if kv_stride_token > _MOST_TOKEN_STRIDE:
        raise ArgumentError(
            f"kv_cache has a token stride of {kv_stride_token} elements; at most {_MOST_TOKEN_STRIDE}: pass a denser "
            "view"
        )


def _argument_strides(name: str, layout: Layout, unit: int) -> tuple[int, ...]:
    strides = element_strides(layout, unit)
    for axis, stride in enumerate(strides):
        if stride > _MOST_STRIDE:
            raise ArgumentError(
                f"{name} has a stride of {stride * unit} bytes in dimension {axis}; at most {_MOST_STRIDE * unit}: "
                "pass a denser view"
            )
    return strides


def _choice(
    num_q_heads: int,
    num_kv_heads: int,
    head_size: int,
    max_query_len: int,
    page_size: int,
    window: int,
    dtype: DType,
    batch: bool,
    target: str,
) -> KernelVariant:
    """The registry's entry; what no build serves is refused in its words, which name the nearest build."""
    try:
        shape = num_q_heads, num_kv_heads, head_size, max_query_len, page_size, _HND, window, dtype, batch
        return select(*shape, target=target)
    except RegistryError as error:
        instead = _INSTEAD.get(error.argument)
        raise ArgumentError(
            f"no kernel serves {num_q_heads} query heads over {num_kv_heads} kv heads of {head_size} elements, "
            f"{max_query_len} query tokens a sequence and pages of {page_size} tokens: {error}"
            + (f" ({instead})" if instead else "")
        ) from error


def _given(variant: KernelVariant, choice: KernelVariant) -> KernelVariant:
    for field in ("num_q_heads", "num_kv_heads", "head_size", "max_query_len", "page_size", "window", "dtype"):
        given, wanted = getattr(variant, field), getattr(choice, field)
        if given != wanted:
            raise ArgumentError(f"variant has {field} {given}, the call has {wanted} ({variant.name}): they must agree")
    return variant
