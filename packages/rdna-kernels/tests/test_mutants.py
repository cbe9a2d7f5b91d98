"""The tests notice wrong kernels: every mutant is compiled, run and caught, and the kernels themselves are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_build import changed_sources, compile_build
from mutants import GROUPS, MANY_WAVES, MUTANTS, NAMED, PROBLEMS, SHARED_TILES, SMALL, SPLIT, TIGHT, Mutant
from rdna_kernels import EmulatedExecutor, Executor
from rdna_registry import DEFAULT_TARGET
from verdict import fault_of, make, pinned, plan_of, segments_of


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_kernel_is_caught(target: str, mutant: Mutant, tmp_path: Path) -> None:
    problem, exact = make(mutant.problem)
    edits = [(mutant.file, mutant.before, mutant.after), *([mutant.also] if mutant.also else [])]
    sources = changed_sources(tmp_path, edits)
    entry = pinned(problem, mutant.problem)
    catalogue = compile_build(entry.build, target, sources, tmp_path)
    options: dict[str, Any] = {"variant": entry}
    if mutant.lse:
        options["lse"] = np.full(problem.q.shape[:2], np.nan, np.float32)
    if mutant.plan:
        options["plan"] = plan_of(problem, mutant.plan, entry=entry)
    assert fault_of(problem, exact, EmulatedExecutor(target, checks="all", catalogue=catalogue), **options)


def test_each_named_fault_has_its_mutants() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))
    assert {name for mutants in NAMED.values() for name in mutants} <= set(names)


def test_the_shapes_are_what_their_names_say() -> None:
    """Without their waves, row groups and segments some mutants would do no harm."""
    shapes = (SMALL, SPLIT, TIGHT, GROUPS, MANY_WAVES, SHARED_TILES)
    small, split, tight, groups, many_waves, shared_tiles = (pinned(make(shape)[0], shape) for shape in shapes)
    assert small.waves > small.build.waves_per_tile == 1
    assert SMALL["lengths"][0] > small.build.key_block
    assert min(segments_of(entry, length) for entry in (split, tight) for length in SPLIT["lengths"]) > 1
    assert groups.row_groups > 1
    assert many_waves.waves == 8
    assert shared_tiles.build.waves_per_tile > 1


@pytest.mark.parametrize("problem_number", range(len(PROBLEMS)))
def test_the_kernels_are_not(executor: Executor, problem_number: int) -> None:
    problem, exact = make(PROBLEMS[problem_number])
    assert fault_of(problem, exact, executor, variant=pinned(problem, PROBLEMS[problem_number])) is None
