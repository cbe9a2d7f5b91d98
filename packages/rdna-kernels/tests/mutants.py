"""Wrong kernels: edits of the device sources, each a fault that the comparison with float64 or a check must notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verdict import knobs

Shape = dict[str, Any]

# More tiles than waves, so that a wave's sums are rescaled.
SMALL: Shape = {"lengths": [300], "gqa": 4, "max_query_len": 2, "page_size": 32, "knobs": knobs(8)}
FEW_WAVES = knobs(4, segments=6, least=2)
SPLIT: Shape = {"lengths": [1100, 700], "gqa": 4, "max_query_len": 2, "page_size": 32, "knobs": FEW_WAVES}
GROUPS: Shape = {
    "lengths": [70],
    "head_size": 128,
    "gqa": 8,
    "max_query_len": 8,
    "knobs": knobs(4, segments=4, least=4, groups=4),
}
MANY_WAVES: Shape = {
    "lengths": [600],
    "head_size": 128,
    "gqa": 8,
    "num_kv_heads": 4,
    "max_query_len": 4,
    "knobs": knobs(8, groups=4, v=0),
}
SHARED_TILES: Shape = {
    "lengths": [600],
    "head_size": 256,
    "gqa": 4,
    "max_query_len": 4,
    "knobs": knobs(8, segments=2, least=2, groups=2, split=2),
}
WINDOW: Shape = {**SMALL, "window": 40}
NHD: Shape = {**SMALL, "layout": "NHD"}
EMPTY: Shape = {"lengths": [0, 2, 40], "max_query_len": 4, "knobs": FEW_WAVES}
TIGHT: Shape = {**SPLIT, "extra_columns": 0}
STEEP: Shape = {**SMALL, "scale": 1.0}
BF16: Shape = {**SMALL, "dtype": "bfloat16"}
FAR: Shape = {**SMALL, "far": True}


@dataclass(frozen=True)
class Mutant:
    """`before` becomes `after` in a file under csrc; `problem` (arguments of `verdict.make`) is what shows it."""

    name: str
    file: str
    before: str
    after: str
    problem: Shape
    also: tuple[str, str, str] | None = None
    """A second edit (file, before, after), for what is guarded twice."""
    lse: bool = False
    """Whether the call asks for the log-sum-exp too."""
    plan: int = 0
    """Workgroups that a work list for the call aims at; 0: no list."""


KEYS_SEEN = (
    Mutant("one key too many", "decode/softmax.h", "position - start + 1;", "position - start + 2;", SMALL),
    Mutant("one key too few", "decode/softmax.h", "position - start + 1;", "position - start;", SMALL),
    Mutant("window too long", "decode/softmax.h", "position - window + 1, 0)", "position - window, 0)", WINDOW),
    Mutant("window too short", "decode/softmax.h", "position - window + 1, 0)", "position - window + 2, 0)", WINDOW),
    Mutant("keys before the first", "decode/softmax.h", "position < 0 ? 0 : ", "", EMPTY),
    Mutant("unmasked tile too many", "decode/work.h", "first_end / kTileKeys -", "first_end / kTileKeys + 1 -", SMALL),
    Mutant("first tile too late", "decode/work.h", "first_key / kTileKeys;", "first_key / kTileKeys + 1;", WINDOW),
    Mutant("last tile left out", "decode/work.h", "length + kTileKeys - 1)", "length)", SMALL),
)
ROWS = (
    Mutant("another head's query", "decode/query.h", "place.kv_head * arguments.gqa", "0", SMALL),
    Mutant("another token", "decode/work.h", "index - head * arguments.max_query_len}", "0}", SMALL),
    Mutant("another head's output", "decode/results.h", "+ target.row.head,", "+ (target.row.head ^ 1),", SMALL),
    Mutant("rows of another group", "decode/work.h", "place.row_group * place.most_rows;", "0;", GROUPS),
)
ADDRESSES = (
    Mutant("K taken for V", "decode/values.h", "offsets.value(i), kKeyBytes)", "offsets.value(i))", SMALL),
    Mutant("V taken for K", "decode/keys.h", "offsets.key(i))", "offsets.key(i), kKeyBytes)", SMALL),
    Mutant(
        "K and V swapped",
        "decode/values.h",
        "offsets.value(i), kKeyBytes)",
        "offsets.value(i))",
        SMALL,
        also=("decode/keys.h", "offsets.key(i))", "offsets.key(i), kKeyBytes)"),
    ),
    Mutant(
        "V some dimensions off",
        "decode/offsets.h",
        "lane_dim(lane() % 16, dims)",
        "lane_dim((lane() + 1) % 16, dims)",
        SMALL,
    ),
    Mutant("another kv head's keys", "decode/pages.h", "strides(place.kv_head,", "strides(0,", SMALL),
    Mutant("pages of dense HND", "decode/pages.h", "arguments.kv_stride_block", "arguments.kv_stride_head * 2", NHD),
    Mutant("tokens of dense HND", "decode/work.h", "arguments.kv_stride_token * 16", "4 * kHeadSize", NHD),
    Mutant(
        "page offsets of 32 bits",
        "decode/pages.h",
        "strides(page_number_, page_stride_)",
        "(uint32_t)strides(page_number_, page_stride_)",
        FAR,
    ),
    Mutant(
        "another sequence's table",
        "decode/pages.h",
        "place.sequence * arguments.block_table_stride",
        "0 * arguments.block_table_stride",
        SPLIT,
    ),
    Mutant("table read past its end", "decode/pages.h", "tile < end_tile_ ?", "tile < end_tile_ + 64 ?", TIGHT),
    Mutant(
        "first page past the table",
        "decode/pages.h",
        "smaller(page, larger(arguments.table_columns - 1, 0))",
        "page",
        {**SMALL, "lengths": [40], "extra_columns": 0},
    ),
    Mutant("first page not found again", "decode/pages.h", "if (first_tile == tile) return;", "return;", WINDOW),
    Mutant(
        "rows past the end loaded",
        "decode/pages.h",
        "smaller(length_ - (int)((tiles_",
        "smaller(16 + length_ - (int)((tiles_",
        SMALL,
        also=("decode/pages.h", "smaller(length_ - (int)(tiles_", "smaller(16 + length_ - (int)(tiles_"),
    ),
)
ARITHMETIC = (
    Mutant(
        "residual dropped, fp16",
        "decode/element.h",
        "half2 rounded =",
        "if (factor != 0) return 0;\n    half2 rounded =",
        SMALL,
    ),
    Mutant(
        "residual dropped, bf16",
        "decode/element.h",
        "uint32_t mask =",
        "if (factor != 0) return 0;\n    uint32_t mask =",
        BF16,
    ),
    Mutant("bf16 truncated", "decode/element.h", "word + 0x7fff + (word >> 16 & 1)", "word", BF16),
    Mutant("sums not rescaled", "decode/softmax.h", "sums[block] *= factor;", "sums[block] *= 1.0f;", STEEP),
    Mutant("weights' sum not rescaled", "decode/softmax.h", "row.sum *= factor;", "", STEEP),
    Mutant("shares not rescaled", "decode/results.h", "sum += share * factor;", "sum += share;", SPLIT),
    Mutant(
        "division by nothing",
        "decode/results.h",
        "piece.sum > 0.0f ? reciprocal(piece.sum) : 0.0f",
        "reciprocal(piece.sum)",
        EMPTY,
    ),
    Mutant(
        "rows without keys not written",
        "decode/results.h",
        "    store(target.at",
        "    if (piece.sum > 0.0f) store(target.at",
        EMPTY,
    ),
)
ORDER = (
    Mutant("Q read before it is there", "decode/decode.hip", "thread);\n  lds_barrier();", "thread);", SMALL),
    Mutant(
        "merge over tiles in use", "decode/merge.h", "  lds_barrier();\n  if (half == 0", "  if (half == 0", MANY_WAVES
    ),
    Mutant(
        "merge before all have put", "decode/merge.h", "% pieces * 8);\n      lds_barrier();", "% pieces * 8);", SMALL
    ),
    Mutant("scores read too early", "decode/decode.hip", "lds_barrier();\n    add_pairs", "add_pairs", SHARED_TILES),
    Mutant("partials not released", "decode/results.h", "    release_to_device();\n    barrier();", "", SPLIT),
    Mutant(
        "partials not acquired",
        "decode/results.h",
        "acquire_from_device();",
        "",
        SPLIT,
        also=("arch/gfx11/atomics.h", "1, __ATOMIC_ACQ_REL", "1, __ATOMIC_RELEASE"),
    ),
    Mutant(
        "arrival read too early",
        "decode/results.h",
        "count_arrival(counter));\n    barrier();",
        "count_arrival(counter));",
        SPLIT,
    ),
    Mutant("merge one arrival early", "decode/results.h", "!= segments - 1) return", "!= segments - 2) return", SPLIT),
    Mutant("counter not reset", "decode/results.h", "if (thread == 0) reset_counter(counter);", "", SPLIT),
)
SCORES = (
    Mutant(
        "sink counted twice",
        "decode/results.h",
        "exp2(sink - move))",
        "2 * exp2(sink - move))",
        {**SMALL, "sinks": True},
    ),
    Mutant(
        "sink of each segment",
        "decode/results.h",
        "    int segment = place_.segment;",
        "    if (place_.features & kFeatureSinks) const_cast<Piece &>(piece).sum += exp2(-reference);\n"
        "    int segment = place_.segment;",
        {**SPLIT, "sinks": True},
    ),
    Mutant(
        "another head's sink",
        "decode/results.h",
        "(uint32_t)at.head",
        "(uint32_t)(at.head ^ 1)",
        {**SMALL, "sinks": True},
    ),
    Mutant(
        "far scores above the cap",
        "decode/scores.h",
        "reciprocal(1.0f + rest)",
        "reciprocal(0.9f + rest)",
        {**SMALL, "softcap": 0.5},
    ),
    Mutant(
        "series for all scores",
        "decode/scores.h",
        "if (any(!(top * inverse < kSeries)))",
        "if (cap == 0.0f)",
        {**SMALL, "softcap": 0.5},
    ),
    Mutant(
        "half the series",
        "decode/scores.h",
        "square, -0.04915948f, 0.13300012f), square",
        "square, 0.0f, 0.0f), square",
        {**SMALL, "softcap": 9.0},
    ),
    Mutant(
        "small scores lost",
        "decode/scores.h",
        "top * inverse < kSeries",
        "top * inverse < 0.0f",
        {**SMALL, "softcap": 1e6},
        also=("decode/scores.h", "score * inverse) < kSeries", "score * inverse) < 0.0f"),
    ),
    Mutant(
        "bias below the cap too",
        "decode/scores.h",
        "(kFeatureSoftcap | kFeatureAlibi)) != kFeatureAlibi) return repeated",
        "kFeatureAlibi) == 0) return repeated",
        {**SMALL, "softcap": 3.0, "alibi": True},
    ),
    Mutant("another head's slope", "decode/scores.h", "+ row.head;", "+ (row.head ^ 1);", {**SMALL, "alibi": True}),
    Mutant("distance one key off", "decode/scores.h", "(int)(place_in_wave / 16)", "0", {**SMALL, "alibi": True}),
    Mutant(
        "bias of every wave of a tile",
        "decode/scores.h",
        " * (1.0f / kHeadDimSplit)",
        "",
        {**SHARED_TILES, "alibi": True},
    ),
    Mutant("reference forgotten", "decode/scores.h", "row.reference() - base;", "-base;", {**STEEP, "softcap": 30.0}),
    Mutant("lse in base 2", "decode/results.h", "+ reference_log2) * kLn2", "+ reference_log2)", SMALL, lse=True),
    Mutant(
        "lse without the sink",
        "decode/results.h",
        "      reference_log2 += move;\n",
        "",
        {**SMALL, "sinks": True},
        lse=True,
    ),
)
PLANNED = (
    Mutant("keys of another segment", "decode/work.h", "planned ? place.first_block : ", "", SPLIT, plan=16),
    Mutant(
        "a block twice",
        "decode/work.h",
        "place.first_block + place.blocks)",
        "place.first_block + place.blocks + 1)",
        SPLIT,
        plan=16,
    ),
    Mutant("slots of another row", "decode/results.h", "row * groups +", "row +", SPLIT, plan=16),
    Mutant(
        "padding rows of a plan run",
        "decode/decode.hip",
        "  if (features & kFeaturePlan && place.sequence < 0) return;\n",
        "",
        SPLIT,
        plan=64,
    ),
)
MUTANTS = (*KEYS_SEEN, *ROWS, *ADDRESSES, *ARITHMETIC, *ORDER, *SCORES, *PLANNED)

NAMED: dict[str, tuple[str, ...]] = {
    "one key too many": ("one key too many",),
    "window off by one": ("window too long", "window too short"),
    "wrong head": ("another head's query", "another head's output", "another kv head's keys"),
    "K and V swapped": ("K and V swapped", "K taken for V", "V taken for K"),
    "missing barrier": ("Q read before it is there", "merge before all have put", "arrival read too early"),
    "counter not reset": ("counter not reset",),
    "residual of the weights dropped": ("residual dropped, fp16", "residual dropped, bf16"),
    "wrong page stride": ("pages of dense HND",),
    "offset of 32 bits": ("page offsets of 32 bits",),
    "sink counted twice": ("sink counted twice", "sink of each segment"),
    "padding row not zeroed": ("division by nothing", "rows without keys not written", "keys before the first"),
}
"""Faults that a test suite of these kernels must notice, and the mutants that have them.

A missing wait is one of them too: the compiler makes the waits, so test_removed_waits takes them out of machine code.
"""

PROBLEMS = (SMALL, SPLIT, GROUPS, MANY_WAVES, SHARED_TILES, WINDOW, NHD, EMPTY, TIGHT, STEEP, BF16, FAR)
