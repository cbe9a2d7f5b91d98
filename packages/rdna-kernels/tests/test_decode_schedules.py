"""Many orders of the waves and workgroups, and many launches on the same buffers: always the same bits, clean counters.

With `--all` thousands of them, which took 1 minute of one core for each target; a small part of them otherwise.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
import rdna_registry
from oracle import relative_error
from problem import Problem, make_problem, nan_filled
from rdna_kernels import EmulatedExecutor, Executor, decode_attention
from rdna_registry import KernelVariant
from verdict import entry_of

Array = np.ndarray[Any, Any]

# Several workgroups to a merge, waves that share tiles and such that do not, few rows and several row groups.
SHAPES: tuple[dict[str, Any], ...] = (
    {"lengths": [200, 0, 33], "head_size": 64, "gqa": 2, "num_kv_heads": 1},
    {"lengths": [130, 70], "head_size": 128, "gqa": 5, "num_kv_heads": 2, "max_query_len": 4},
    {"lengths": [90], "head_size": 256, "gqa": 4, "num_kv_heads": 1, "max_query_len": 2, "dtype": "bfloat16"},
    {"lengths": [60, 40], "head_size": 80, "gqa": 3, "num_kv_heads": 1, "window": 50},
    {"lengths": [100], "head_size": 512, "gqa": 2, "num_kv_heads": 1},
)
DOT_PRODUCT = KernelVariant(256, 8, 4, 1, 16, 1, max_segments=5, waves=8, dot_product=1)


@pytest.fixture(scope="module")
def share(request: pytest.FixtureRequest) -> int:
    """By what the numbers of the whole set are divided."""
    return 1 if request.config.getoption("--all", default=False) else 20


def split(problem: Problem, segments: int = 6) -> KernelVariant:
    """The registry's entry, but in as many segments as there are keys for."""
    return dataclasses.replace(entry_of(problem), max_segments=segments, min_segment_blocks=1)


def cases() -> list[tuple[Problem, KernelVariant]]:
    problems = [make_problem(**shape) for shape in SHAPES]
    dot_product = make_problem([150], head_size=256, gqa=2, num_kv_heads=4)
    return [*((problem, split(problem)) for problem in problems), (dot_product, DOT_PRODUCT)]


def scratch_for(problems: list[tuple[Problem, KernelVariant]]) -> list[Array]:
    """Flat NaN, and zeroed counters, as large as any of the problems needs."""
    made = [rdna_registry.make_scratch(entry, None, len(problem.seq_lens)) for problem, entry in problems]
    sizes = [max(scratch[index].size for scratch in made) for index in range(4)]
    return [*(nan_filled([size], np.float32) for size in sizes[:3]), np.zeros(sizes[3], np.int32)]


def cut(scratch: list[Array], head_size: int) -> tuple[Array, ...]:
    """The scratch for a call of a head size."""
    rows = len(scratch[0]) // head_size
    return scratch[0][: rows * head_size].reshape(rows, head_size), *scratch[1:]


def test_any_schedule_gives_the_same_bits(target: str, executor: Executor, share: int) -> None:
    """The shapes take turns on one scratch, each time in another order of waves and of up to 8 workgroups."""
    problems = cases()
    scratch = scratch_for(problems)
    wanted = [problem.run(executor, variant=entry) for problem, entry in problems]
    for (problem, entry), bits in zip(problems, wanted, strict=True):
        assert relative_error(bits, problem.exact()) <= problem.tolerance, entry.name
    shuffled = EmulatedExecutor(target, checks="all", schedule="random")
    draw = random.Random(5)
    for seed in range(4000 // share):
        index = draw.randrange(len(problems))
        problem, entry = problems[index]
        shuffled.seed = seed
        got = problem.run(shuffled, variant=entry, scratch=cut(scratch, entry.head_size))
        assert (got.view(np.uint16) == wanted[index].view(np.uint16)).all(), (seed, entry.name)
        assert not scratch[3].any(), (seed, entry.name)
    assert np.isfinite(scratch[2]).any(), "nothing was split"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"h{shape['head_size']}")
def test_lengths_that_change_on_fixed_buffers(executor: Executor, share: int, shape: dict[str, Any]) -> None:
    """Launches as a captured graph replays them: only the lengths, and what stands in the buffers, are new."""
    most = [2 * length + 1 for length in shape["lengths"]]
    fixed = make_problem(**{**shape, "lengths": most})
    fixed.kv_cache[np.isnan(fixed.kv_cache.astype(np.float32))] = 1  # keys that a shorter length, or no window, shows
    entry = split(fixed)
    scratch = cut(scratch_for([(fixed, entry)]), entry.head_size)
    out = nan_filled(fixed.q.shape, fixed.q.dtype)
    draw = np.random.default_rng(9)
    for number in range(1000 // share):
        fixed.seq_lens[:] = [draw.integers(length + 1) for length in most]
        fixed.q[...] = draw.standard_normal(fixed.q.shape)
        fixed.run(executor, variant=entry, scratch=scratch, out=out)
        fresh = decode_attention(
            fixed.q.copy(),
            fixed.kv_cache,
            fixed.block_table.copy(),
            fixed.seq_lens.copy(),
            max_query_len=fixed.max_query_len,
            window=fixed.window,
            variant=entry,
            scratch=rdna_registry.make_scratch(entry, None, len(most)),
            executor=executor,
        )
        assert (out.view(np.uint16) == fresh.view(np.uint16)).all(), (number, fixed.seq_lens)
        assert not scratch[3].any(), (number, fixed.seq_lens)
        if number % 50 == 0:
            assert relative_error(out, fixed.exact()) <= fixed.tolerance
