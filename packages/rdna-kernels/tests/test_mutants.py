"""The tests notice wrong kernels: every mutant is compiled, run and caught, and the kernels themselves are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_build import changed_sources, compile_build
from mutants import MUTANTS, NAMED, PROBLEMS, SHARED_TILES, Mutant
from rdna_kernels import EmulatedExecutor, Executor
from rdna_registry import DEFAULT_TARGET
from verdict import entry_of, fault_of, make, plan_of


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_kernel_is_caught(target: str, mutant: Mutant, tmp_path: Path) -> None:
    problem, exact = make(mutant.problem)
    edits = [(mutant.file, mutant.before, mutant.after), *([mutant.also] if mutant.also else [])]
    sources = changed_sources(tmp_path, edits)
    catalogue = compile_build(entry_of(problem).build, target, sources, tmp_path)
    options: dict[str, Any] = {}
    if mutant.lse:
        options["lse"] = np.full(problem.q.shape[:2], np.nan, np.float32)
    if mutant.plan:
        options["plan"] = plan_of(problem, mutant.plan)
    assert fault_of(problem, exact, EmulatedExecutor(target, checks="all", catalogue=catalogue), **options)


def test_each_named_fault_has_its_mutants() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))
    assert {name for mutants in NAMED.values() for name in mutants} <= set(names)


def test_waves_share_tiles_where_mutants_need_it() -> None:
    problem, _ = make(SHARED_TILES)
    assert entry_of(problem).build.waves_per_tile > 1


@pytest.mark.parametrize("problem_number", range(len(PROBLEMS)))
def test_the_kernels_are_not(executor: Executor, problem_number: int) -> None:
    problem, exact = make(PROBLEMS[problem_number])
    assert fault_of(problem, exact, executor) is None
