"""`KernelVariant`: one decode entry, its shape and its launch knobs."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, fields

from rdna_registry.arguments import INT32_MAX, MAX_HEADS, ArgumentError, as_flag, as_int, as_multiple, is_plain_number
from rdna_registry.builds import HEAD_SIZE_STEP, Build, wave_dims
from rdna_registry.dtypes import DType, as_dtype
from rdna_registry.remember import remembered

MAX_QUERY_LEN = 127
"""Most query tokens of a sequence that a decode entry serves."""

ROW_TILE = 16
"""Query rows of one WMMA tile; the rows of a workgroup are padded to a multiple of it."""


class Layout(enum.IntEnum):
    """Order of the KV cache's dimensions within a block: tokens before heads, or heads before tokens."""

    NHD = 0
    HND = 1


def as_layout(layout: int) -> Layout:
    """The `Layout` of 0 (NHD) or 1 (HND); ValueError for any other number."""
    number = as_int("layout", layout, 0)
    if number > 1:
        raise ArgumentError("layout", number, "0 (NHD) or 1 (HND)")
    return Layout(number)


@dataclass(frozen=True)
class KernelVariant:
    """One decode entry: a shape (heads, query tokens, page) and the knobs that it is launched with.

    ``max_segments`` bounds the KV segments of a (kv head, row group); ``row_groups`` workgroups share the query rows of
    a kv head; a segment has at least ``min_segment_blocks`` key blocks; ``waves`` are those of a workgroup, of which
    ``head_dim_split`` share a key tile (0: the kernel's own choice); ``window`` is in keys, 0 for full causal
    attention. ``dot_product`` marks an entry tuned for a kernel with a workgroup for each q head; here a workgroup for
    each kv head runs it, see `build`. Knobs that contradict each other are a ValueError.
    """

    head_size: int
    num_q_heads: int
    num_kv_heads: int
    max_query_len: int
    page_size: int
    layout: int
    max_segments: int = 1
    row_groups: int = 1
    min_segment_blocks: int = 1
    waves: int = 8
    head_dim_split: int = 0
    prefetch: int = 0
    v_in_lds: int = 0
    dot_product: int = 0
    dtype: DType = DType.fp16
    window: int = 0
    batched: int = 0

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "head_size": as_multiple("head_size", self.head_size, HEAD_SIZE_STEP, 1024),
            "num_q_heads": as_int("num_q_heads", self.num_q_heads, 1, MAX_HEADS),
            "num_kv_heads": as_int("num_kv_heads", self.num_kv_heads, 1, MAX_HEADS),
            "max_query_len": as_int("max_query_len", self.max_query_len, 1, MAX_QUERY_LEN),
            "page_size": as_multiple("page_size", self.page_size, 16, INT32_MAX),
            "layout": as_layout(self.layout),
            "max_segments": as_int("max_segments", self.max_segments, 1, 1024),
            "row_groups": as_int("row_groups", self.row_groups, 1),
            "min_segment_blocks": as_int("min_segment_blocks", self.min_segment_blocks, 1, INT32_MAX),
            "waves": as_int("waves", self.waves, 1, 32),
            "head_dim_split": as_int("head_dim_split", self.head_dim_split, 0),
            "dtype": as_dtype(self.dtype),
            "window": as_int("window", self.window, 0, INT32_MAX),
        }
        for flag in ("prefetch", "v_in_lds", "dot_product", "batched"):
            checked[flag] = as_flag(flag, getattr(self, flag))
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        self._check_knobs()

    def _check_knobs(self) -> None:
        if self.num_q_heads % self.num_kv_heads:
            raise ArgumentError("num_q_heads", self.num_q_heads, f"a multiple of num_kv_heads = {self.num_kv_heads}")
        if self.waves & (self.waves - 1):
            raise ArgumentError("waves", self.waves, "a power of two")
        if (self.row_groups - 1) * self.rows_per_group >= self.gqa * self.max_query_len:
            rows = self.gqa * self.max_query_len
            raise ArgumentError("row_groups", self.row_groups, f"fewer, so that each has some of the {rows} rows")
        if self.scratch_shapes()[1][0] > INT32_MAX:
            allowed = f"fewer, so that the rows of partials, now {self.scratch_shapes()[1][0]}, stay in int32"
            raise ArgumentError("max_segments", self.max_segments, allowed)
        split = self.head_dim_split
        if split and (self.waves % split or not wave_dims(self.head_size, split)):
            parts = f"head_size = {self.head_size} into parts of whole 16s"
            allowed = f"0 or a number that divides waves = {self.waves}, and {parts} but for the last"
            raise ArgumentError("head_dim_split", split, allowed)
        if self.dot_product:
            for knob, only in (("row_groups", 1), ("head_dim_split", 0), ("prefetch", 0), ("v_in_lds", 0)):
                if getattr(self, knob) != only:
                    raise ArgumentError(knob, getattr(self, knob), f"{only} where dot_product = 1")

    @property
    def gqa(self) -> int:
        """Query heads of one kv head."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def rows_per_group(self) -> int:
        """Query rows of one row group, ceil(gqa * max_query_len / row_groups); the last group may have fewer."""
        return -(-self.gqa * self.max_query_len // self.row_groups)

    @property
    def rows_padded(self) -> int:
        """Query rows of a workgroup, rounded up to whole WMMA tiles."""
        return -(-self.rows_per_group // ROW_TILE) * ROW_TILE

    @functools.cached_property
    def name(self) -> str:
        """``rdna_decode_`` or ``rdna_decode_batch_`` and the values of `config_fields`, joined by ``_``."""
        prefix = "rdna_decode_batch_" if self.batched else "rdna_decode_"
        return prefix + "_".join(str(value) for value in config_fields(self))

    @classmethod
    def from_name(cls, name: str) -> KernelVariant:
        """The variant, of layout HND, that has this `name`; ValueError where the text is no such name."""
        batched = name.startswith("rdna_decode_batch_")
        values = name.removeprefix("rdna_decode_batch_" if batched else "rdna_decode_").split("_")
        numbers = len(values) == len(DECODE_CONFIG_FIELDS) and all(map(is_plain_number, values))
        if not name.startswith("rdna_decode_") or not numbers:
            allowed = f"rdna_decode_ or rdna_decode_batch_ and {len(DECODE_CONFIG_FIELDS)} numbers joined by _"
            raise ArgumentError("name", name, allowed)
        knobs = dict(zip(DECODE_CONFIG_FIELDS, map(int, values), strict=True))
        code = as_flag("dtype", knobs.pop("dtype"))
        return cls(**knobs, dtype=DType.bf16 if code else DType.fp16, layout=Layout.HND, batched=int(batched))

    @functools.cached_property
    def build(self) -> Build:
        """The code object that serves this entry.

        An entry with ``dot_product`` = 1 has a matrix build: the dot-product form would ask for each byte of K and V
        once for each of the gqa q heads, the matrix form asks once. It is the build of the entry's waves and of the
        kernel's own head_dim_split; where the rows need more than one WMMA tile, 4 waves share each key tile, for the
        accumulators of fewer would not fit in registers. Segments are those of the entry, in key blocks of the build.
        """
        waves, split = self.waves, self.head_dim_split
        if self.dot_product and self.rows_padded > ROW_TILE:
            waves = split = 4
        return Build(
            head_size=self.head_size,
            rows_padded=self.rows_padded,
            waves=waves,
            head_dim_split=split,
            prefetch=self.prefetch,
            v_in_lds=self.v_in_lds,
            dot_product=0,
            dtype=self.dtype,
        )

    def scratch_shapes(self) -> tuple[tuple[int, int], tuple[int], int]:
        """Shapes of the partial accumulators, of the partial maxima (and sums), and the number of counters.

        They are those of one sequence. WMMA entries have one partial row for each (kv head, row group, segment, padded
        row) and 4 counters for each (kv head, row group), of which launches use less; dot-product entries one row for
        each (q head, segment, query token) and one counter for each q head.
        """
        if self.dot_product:
            rows = self.num_q_heads * self.max_segments * self.max_query_len
            counters = self.num_q_heads
        else:
            rows = self.num_kv_heads * self.row_groups * self.max_segments * self.rows_padded
            counters = 4 * self.num_kv_heads * self.row_groups
        return (rows, self.head_size), (rows,), counters


DECODE_CONFIG_FIELDS: tuple[str, ...] = tuple(
    field.name for field in fields(KernelVariant) if field.name not in ("layout", "batched")
)


@remembered
def config_fields(variant: KernelVariant) -> tuple[int, ...]:
    """The variant's values in the order of `DECODE_CONFIG_FIELDS`, dtype as 0 (fp16) or 1 (bf16)."""
    values = (getattr(variant, field) for field in DECODE_CONFIG_FIELDS)
    return tuple(value.code if isinstance(value, DType) else value for value in values)


def expected_kv_cache_strides(variant: KernelVariant) -> tuple[int, int, int]:
    """Strides, in elements, of (block, kv head, token) of the packed cache of the variant's layout.

    HND is ``[blocks, num_kv_heads, page_size, 2 * head_size]``, NHD is ``[blocks, page_size, num_kv_heads, 2 *
    head_size]``; a row holds K and then V.
    """
    row = 2 * variant.head_size
    block = variant.num_kv_heads * variant.page_size * row
    if variant.layout == Layout.HND:
        return block, variant.page_size * row, row
    return block, row, variant.num_kv_heads * row


def scratch_bytes(variant: KernelVariant) -> int:
    """Bytes of scratch that one sequence needs: fp32 accumulators, maxima and sums, and int32 counters."""
    (rows, columns), _, counters = variant.scratch_shapes()
    return 4 * (rows * columns + 2 * rows + counters)
