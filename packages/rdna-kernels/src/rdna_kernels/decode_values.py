"""Checks of what stands in seq_lens and the block table, for arrays that the host can read."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdna_kernels.errors import ArgumentError

MAX_SEQ_LEN = 2**30
"""Most tokens of a sequence: kernels count keys, rounded up and with a window added, in 32 bits."""


def check_values(
    seq_lens: np.ndarray[Any, Any], block_table: np.ndarray[Any, Any], page_size: int, num_pages: int
) -> None:
    """Refuse lengths and block ids that would send a kernel outside its arrays.

    seq_lens int32 [num_seqs], in tokens; block_table int32 [num_seqs, columns]. Every length must be 0 or more and have
    ceil(length / page_size) columns; every block id inside a length must be a page of the cache. What stands in the
    table past a length may be anything. ArgumentError names the first offender.
    """
    lengths = seq_lens.tolist()
    if not lengths:
        return
    shortest, longest = min(lengths), max(lengths)
    if shortest < 0:
        sequence = lengths.index(shortest)
        raise ArgumentError(f"seq_lens[{sequence}] is {shortest}; a length is 0 (nothing to attend to) or more")
    if longest > MAX_SEQ_LEN:
        raise ArgumentError(
            f"seq_lens[{lengths.index(longest)}] is {longest}; a sequence has at most {MAX_SEQ_LEN} tokens"
        )
    columns = -(-longest // page_size)
    if columns > block_table.shape[1]:
        sequence = lengths.index(longest)
        raise ArgumentError(
            f"block_table has {block_table.shape[1]} columns; seq_lens[{sequence}] = {longest} needs {columns} pages "
            f"of {page_size} tokens"
        )
    if not columns:
        return
    used = block_table[:, :columns]
    # The rectangle holds ids past shorter lengths too, which may be garbage: look closer only where it looks wrong.
    if int(used.view(np.uint32).max()) >= num_pages:  # a negative id is a huge one
        inside = np.arange(columns, dtype=np.int64) * page_size < seq_lens[:, None]
        wrong = np.argwhere(inside & ((used < 0) | (used >= num_pages)))
        if wrong.size:
            sequence, column = (int(index) for index in wrong[0])
            raise ArgumentError(
                f"block_table[{sequence}, {column}] is {int(used[sequence, column])}, inside the {lengths[sequence]} "
                f"tokens of that sequence; kv_cache has pages 0 to {num_pages - 1}"
            )


LARGEST_SCORE = 5e6
"""What kernels promise outputs for, of |scale| * sum |q_i k_i| + |bias| + |slope|; no host looks for it.

A row's reference (csrc/decode/softmax.h) moves by at most twice that, and with a bias (scores.h) 19 roundings to fp32
stand between a move and the weights that follow it: 19 * 2^-24 * log2(e) * 5e6 is 8.2, and a weight at the reference,
which is 2^7, may grow by 2^9 before it passes the largest fp16.
"""

WEIGHT_ERROR = 2e-7
"""The error of a weight's logarithm over the size of its score, measured as at most 1.9e-7 near `LARGEST_SCORE`."""

LARGEST_SINK = 1e6
LARGEST_SLOPE = 1e3
"""Above these the kernel's fp32 logarithms lose their meaning; slopes of models are at most 1."""


def check_logits(sinks: np.ndarray[Any, Any] | None, alibi_slopes: np.ndarray[Any, Any] | None) -> None:
    """Refuse sinks and slopes, float32 [num_q_heads], that no softmax has: ArgumentError names the first such head."""
    for name, values, largest, also in (
        ("sinks", sinks, LARGEST_SINK, " or -inf"),
        ("alibi_slopes", alibi_slopes, LARGEST_SLOPE, ""),
    ):
        if values is None:
            continue
        good = np.abs(values) <= largest
        if also:
            good |= values == -np.inf
        if not good.all():
            head = int(np.argmin(good))
            raise ArgumentError(
                f"{name}[{head}] is {values[head]}; it must be a number of at most {largest:g} in size{also}"
            )


def check_plan(plan: np.ndarray[Any, Any], num_seqs: int) -> None:
    """Refuse a work list, int32 [rows, 4], that a kernel could not follow or that leaves a sequence out.

    A row has a sequence below `num_seqs` or is -1 throughout; a sequence's segments stand in rows one after another,
    the first from key block 0 (of those that the window leaves), each other from the block where the one before ends.
    ArgumentError names the first row, or the first sequence, for which that is not so.
    """
    wanted: tuple[int, int, int, int] | None = None  # sequence, segment, segments and first block of the next row
    seen: set[int] = set()
    for number, (sequence, packed, first, blocks) in enumerate(plan.tolist()):
        if sequence == packed == first == blocks == -1 and wanted is None:
            continue
        segment, segments = packed & 0xFFFF, packed >> 16
        bad = not 0 <= sequence < num_seqs or segments < 1 or first < 0 or blocks < 0
        starts = wanted is None and segment == 0 and sequence not in seen and first == 0
        if bad or not (starts or (sequence, segment, segments, first) == wanted):
            raise ArgumentError(
                f"plan[{number}] is {[sequence, packed, first, blocks]}; a row is {{sequence below {num_seqs}, "
                "segment | segments << 16, first key block, key blocks}, a sequence's segments in rows one after "
                "another without a gap, or -1 throughout: take it from rdna_registry.plan_decode"
            )
        seen.add(sequence)
        wanted = (sequence, segment + 1, segments, first + blocks) if segment + 1 < segments else None
    if wanted is not None:
        raise ArgumentError(f"plan ends within the segments of sequence {wanted[0]}; it must have all of them")
    if len(seen) < num_seqs:
        missing = min(set(range(num_seqs)) - seen)
        raise ArgumentError(
            f"plan has no row for sequence {missing} of {num_seqs}, whose output would not be written: plan every "
            "sequence of the batch with at least 1 query token, also one without keys"
        )
