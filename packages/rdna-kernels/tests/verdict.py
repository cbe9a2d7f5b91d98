"""What is wrong with a kernel's answer to one problem, in a word; the judge of mutants and of the kernels alike."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import rdna_registry
from guarded_memory import sparse_zeros
from oracle import relative_error
from problem import Problem, make_problem
from rdna_emulator import EmulatorError
from rdna_kernels import Executor
from rdna_registry import DEFAULT_TARGET, KernelVariant, plan_decode, select

Array = np.ndarray[Any, Any]
Knobs = dict[str, int]


def entry_of(problem: Problem, target: str = DEFAULT_TARGET) -> KernelVariant:
    """The registry's entry for a problem on a target."""
    num_q_heads, head_size = problem.q.shape[1:]
    num_kv_heads, page_size = problem.kv_cache.shape[1:3]
    batch = len(problem.seq_lens) > 1
    return select(
        num_q_heads,
        num_kv_heads,
        head_size,
        problem.max_query_len,
        page_size,
        1,
        problem.window,
        problem.q.dtype,
        batch,
        target=target,
    )


def knobs(waves: int, *, segments: int = 1, least: int = 1, groups: int = 1, split: int = 0, v: int = 1) -> Knobs:
    """Knobs of a shape that are not left to the registry, whose choice changes as it is tuned."""
    return {
        "max_segments": segments,
        "row_groups": groups,
        "min_segment_blocks": least,
        "waves": waves,
        "head_dim_split": split,
        "prefetch": 0,
        "v_in_lds": v,
    }


def pinned(problem: Problem, shape: dict[str, Any]) -> KernelVariant:
    """The entry of a problem with the `knobs` of the shape that it was made of."""
    return dataclasses.replace(entry_of(problem), **shape["knobs"])


def segments_of(entry: KernelVariant, length: int) -> int:
    """The segments that an entry without a window makes of a sequence."""
    blocks = -(-length // entry.build.key_block)
    return max(1, min(entry.max_segments, blocks // entry.min_segment_blocks))


def plan_of(problem: Problem, target_workgroups: int, bound: int = 0, entry: KernelVariant | None = None) -> Array:
    """The work list of a batch whose lengths are known to be at most `bound` shorter than what the host knows."""
    query_lens = np.full(len(problem.seq_lens), problem.max_query_len)
    entry = entry or entry_of(problem)
    return plan_decode(query_lens, problem.seq_lens + bound, entry, problem.window, target_workgroups)


def make_scratch(
    problem: Problem, entry: KernelVariant | None = None, plan_rows: int = 0
) -> tuple[Array, Array, Array, Array]:
    """The registry's scratch of a problem (by default of its own choice), with NaN where no result is yet."""
    entry = entry or entry_of(problem)
    sequences = max(len(problem.seq_lens), -(-plan_rows // entry.max_segments))
    scratch = rdna_registry.make_scratch(entry, None, max_seqs=sequences)
    for partial in scratch[:3]:
        partial.fill(np.nan)
    return scratch


def make(shape: dict[str, Any]) -> tuple[Problem, Array]:
    """A problem and its exact answer; with `far`, its pages stand past 2^31 and 2^32 elements of a sparse cache."""
    far = shape.get("far", False)
    problem = make_problem(**{name: value for name, value in shape.items() if name not in ("far", "knobs")})
    exact = problem.exact()
    if far:
        problem = at_far_pages(problem)
    return problem, exact


def at_far_pages(problem: Problem) -> Problem:
    """The same problem, of one sequence, in a cache where its pages stand past 2^31 and 2^32 elements."""
    _, num_kv_heads, page_size, width = problem.kv_cache.shape
    length = int(problem.seq_lens[0])
    pages = problem.block_table[0, : -(-length // page_size)]
    elements = num_kv_heads * page_size * width
    half = len(pages) // 2
    first, second = (limit // elements + 1 for limit in (2**31, 2**32))
    ids = np.concatenate([first + np.arange(half), second + np.arange(len(pages) - half)])
    cache = sparse_zeros((int(ids[-1]) + 1, num_kv_heads, page_size, width), problem.kv_cache.dtype)
    cache[ids] = problem.kv_cache[pages]
    return Problem(
        problem.q,
        cache,
        ids[None].astype(np.int32),
        problem.seq_lens,
        problem.max_query_len,
        problem.window,
        problem.scale,
    )


class Verdict(NamedTuple):
    """What is wrong with an answer, None if nothing is, and its largest relative error (infinite without an answer)."""

    fault: str | None
    error: float


def judge(problem: Problem, exact: Array, executor: Executor, **options: Any) -> Verdict:
    """The first thing that is wrong: a finding or trap of the emulator, a wrong value, a counter left behind."""
    plan, lse = options.get("plan"), options.get("lse")
    entry = options.get("variant") or entry_of(problem, executor.target)
    scratch = make_scratch(problem, entry, 0 if plan is None else len(plan))
    try:
        got = problem.run(executor, scratch=scratch, **options)
    except EmulatorError as finding:
        return Verdict(type(finding).__name__, float("inf"))
    error = relative_error(got, exact)
    fault = None
    if not error <= problem.tolerance:
        fault = "wrong value"
    elif not rounded_to_nearest(got, exact):
        fault = "not rounded to nearest"
    elif lse is not None and not lse_is_right(lse, problem.exact_with_lse()[1]):
        fault = "wrong lse"
    elif scratch[3].any():
        fault = "counters not zero"
    return Verdict(fault, error)


def fault_of(problem: Problem, exact: Array, executor: Executor, **options: Any) -> str | None:
    """What is wrong with the answer to a problem, None if nothing is: see `judge`."""
    return judge(problem, exact, executor, **options).fault


def lse_is_right(got: Array, exact: Array) -> bool:
    """Whether a log-sum-exp is the exact one but for what fp32 scores of its size cannot show."""
    return bool(np.allclose(got, exact, rtol=2e-6, atol=3e-5))


def rounded_to_nearest(got: Array, exact: Array) -> bool:
    """Whether each value of some size is, but for a small error, the nearest of its type to the exact one."""
    mantissa_bits = {"float16": 10, "bfloat16": 7}[got.dtype.name]
    spacing = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-6))) - mantissa_bits)
    large = np.abs(exact) >= 2.0**-6
    return bool((np.abs(got.astype(np.float64) - exact)[large] <= 0.6 * spacing[large]).all())
