"""Many orders of the waves and workgroups, and many launches on the same buffers: always the same bits, clean counters.

With `--all` thousands of them, which took 1 minute of one core for each target; a small part of them otherwise.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
import rdna_registry
from oracle import relative_error
from problem import Problem, make_problem, nan_filled
from rdna_kernels import EmulatedExecutor, Executor
from rdna_registry import KernelVariant, plan_decode
from verdict import entry_of, segments_of

Array = np.ndarray[Any, Any]

# Several workgroups to a merge, waves that share tiles and such that do not, few rows and several row groups.
SHAPES: tuple[dict[str, Any], ...] = (
    {"lengths": [200, 0, 33], "head_size": 64, "gqa": 2, "num_kv_heads": 1},
    {"lengths": [130, 70], "head_size": 128, "gqa": 5, "num_kv_heads": 2, "max_query_len": 4},
    {"lengths": [90], "head_size": 256, "gqa": 4, "num_kv_heads": 1, "max_query_len": 2, "dtype": "bfloat16"},
    {"lengths": [60, 40], "head_size": 80, "gqa": 3, "num_kv_heads": 1, "window": 50},
    {"lengths": [100], "head_size": 512, "gqa": 2, "num_kv_heads": 1},
    {
        "lengths": [150, 3],
        "head_size": 96,
        "gqa": 3,
        "num_kv_heads": 1,
        "max_query_len": 2,
        "sinks": True,
        "softcap": 5.0,
        "alibi": True,
    },
)
RAGGED: dict[str, Any] = {"lengths": [330, 5, 0, 90], "head_size": 64, "gqa": 9, "num_kv_heads": 1, "max_query_len": 2}
DOT_PRODUCT = KernelVariant(256, 8, 4, 1, 16, 1, max_segments=5, waves=8, dot_product=1)


@pytest.fixture(scope="module")
def share(request: pytest.FixtureRequest) -> int:
    """By what the numbers of the whole set are divided."""
    return 1 if request.config.getoption("--all", default=False) else 20


class Case(NamedTuple):
    """A problem, the entry that it is run with, and its work list if it has one."""

    problem: Problem
    entry: KernelVariant
    plan: Array | None = None

    def run(self, executor: Executor, **options: Any) -> list[Array]:
        """The output, and with a work list or with features the lse: a build has another kernel for these."""
        lse = None
        if self.plan is not None or self.problem.sinks is not None:
            lse = options.setdefault("lse", nan_filled(self.problem.q.shape[:2], np.float32))
        out = self.problem.run(executor, variant=self.entry, plan=self.plan, **options)
        return [out] if lse is None else [out, lse]

    @property
    def sequences(self) -> int:
        """Sequences whose scratch is enough."""
        rows = 0 if self.plan is None else -(-len(self.plan) // self.entry.max_segments)
        return max(len(self.problem.seq_lens), rows)


def split(problem: Problem, segments: int = 6) -> KernelVariant:
    """The registry's entry, but in as many segments as there are keys for."""
    return dataclasses.replace(entry_of(problem), max_segments=segments, min_segment_blocks=1)


def planned(problem: Problem) -> Case:
    """A problem by a work list for 12 workgroups, made of its present lengths."""
    entry = split(problem)
    queries = np.full(len(problem.seq_lens), problem.max_query_len)
    return Case(problem, entry, plan_decode(queries, problem.seq_lens, entry, problem.window, 12))


def cases() -> list[Case]:
    """Each shape in even segments, a dot-product entry, and a ragged batch by a work list."""
    problems = [make_problem(**shape) for shape in SHAPES]
    dot_product = make_problem([150], head_size=256, gqa=2, num_kv_heads=4)
    even = [Case(problem, split(problem)) for problem in problems]
    return [*even, Case(dot_product, DOT_PRODUCT), planned(make_problem(**RAGGED))]


def test_the_shapes_are_what_they_are_for() -> None:
    """Builds and row groups are the registry's choice."""
    entries = [case.entry for case in cases()]
    assert {entry.build.waves_per_tile > 1 for entry in entries} == {False, True}
    assert {entry.row_groups > 1 for entry in entries} == {False, True}
    without_window = [case for case in cases() if not case.problem.window]
    assert min(segments_of(case.entry, int(case.problem.seq_lens.max())) for case in without_window) > 1


def scratch_for(cases: list[Case]) -> list[Array]:
    """Flat NaN, and zeroed counters, as large as any of the cases needs."""
    made = [rdna_registry.make_scratch(case.entry, None, case.sequences) for case in cases]
    sizes = [max(scratch[index].size for scratch in made) for index in range(4)]
    return [*(nan_filled([size], np.float32) for size in sizes[:3]), np.zeros(sizes[3], np.int32)]


def same_bits(one: list[Array], other: list[Array]) -> bool:
    return all((a.view(np.uint8) == b.view(np.uint8)).all() for a, b in zip(one, other, strict=True))


def cut(scratch: list[Array], head_size: int) -> tuple[Array, ...]:
    """The scratch for a call of a head size."""
    rows = len(scratch[0]) // head_size
    return scratch[0][: rows * head_size].reshape(rows, head_size), *scratch[1:]


def test_any_schedule_gives_the_same_bits(target: str, executor: Executor, share: int) -> None:
    """The shapes take turns on one scratch, each time in another order of waves and of up to 8 workgroups."""
    all_cases = cases()
    scratch = scratch_for(all_cases)
    wanted = [case.run(executor) for case in all_cases]
    for case, (out, *_) in zip(all_cases, wanted, strict=True):
        assert relative_error(out, case.problem.exact()) <= case.problem.tolerance, case.entry.name
    shuffled = EmulatedExecutor(target, checks="all", schedule="random")
    draw = random.Random(5)
    for seed in range(4000 // share):
        index = draw.randrange(len(all_cases))
        case = all_cases[index]
        shuffled.seed = seed
        got = case.run(shuffled, scratch=cut(scratch, case.entry.head_size))
        assert same_bits(got, wanted[index]), (seed, case.entry.name)
        assert not scratch[3].any(), (seed, case.entry.name)
    assert np.isfinite(scratch[2]).any(), "nothing was split"


@pytest.mark.parametrize("shape", [*SHAPES, RAGGED], ids=lambda shape: f"h{shape['head_size']}-g{shape['gqa']}")
def test_lengths_that_change_on_fixed_buffers(executor: Executor, share: int, shape: dict[str, Any]) -> None:
    """Launches as a captured graph replays them: only the lengths, and what stands in the buffers, are new."""
    most = [2 * length + 1 for length in shape["lengths"]]
    problem = make_problem(**{**shape, "lengths": most})
    # Keys that a shorter length, or another place of the window, shows.
    problem.kv_cache[np.isnan(problem.kv_cache.astype(np.float32))] = 1
    # A work list is made of the longest lengths, and kept.
    fixed = planned(problem) if shape is RAGGED else Case(problem, split(problem))
    scratch = cut(scratch_for([fixed]), fixed.entry.head_size)
    out = nan_filled(problem.q.shape, problem.q.dtype)
    draw = np.random.default_rng(9)
    for number in range(1000 // share):
        problem.seq_lens[:] = [draw.integers(length + 1) for length in most]
        problem.q[...] = draw.standard_normal(problem.q.shape)
        got = fixed.run(executor, scratch=scratch, out=out)
        fresh = dataclasses.replace(
            problem, q=problem.q.copy(), block_table=problem.block_table.copy(), seq_lens=problem.seq_lens.copy()
        )
        new_scratch = rdna_registry.make_scratch(fixed.entry, None, fixed.sequences)
        wanted = fixed._replace(problem=fresh).run(executor, scratch=new_scratch)
        assert same_bits(got, wanted), (number, problem.seq_lens)
        assert not scratch[3].any(), (number, problem.seq_lens)
        if number % 50 == 0:
            assert relative_error(out, problem.exact()) <= problem.tolerance
