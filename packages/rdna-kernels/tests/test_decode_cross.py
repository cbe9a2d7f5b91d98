"""Every shape of the cross against float64, on the machine code, with every check on."""

from __future__ import annotations

import dataclasses
import itertools

import cross
import pytest
from cross import Case, full_cross, sample
from rdna_emulator import EmulatorError
from rdna_kernels import Executor
from rdna_registry import DEFAULT_TARGET, TARGETS

AXES = {
    "head_size": cross.HEAD_SIZES,
    "dtype": cross.DTYPES,
    "tokens": cross.TOKENS,
    "gqa": cross.GQA,
    "length": cross.LENGTHS,
    "window": cross.WINDOWS,
    "batch": cross.BATCH,
    "page_size": cross.PAGES,
}
OTHER_TARGETS = [target.name for target in TARGETS if target.name != DEFAULT_TARGET]


def check(executor: Executor, case: Case) -> None:
    problem = case.problem()
    assert problem.error(executor) <= problem.tolerance


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("case", sample(), ids=str)
def test_sample(executor: Executor, case: Case) -> None:
    check(executor, case)


@pytest.mark.parametrize("target", OTHER_TARGETS, indirect=True)
@pytest.mark.parametrize("case", sample()[::5], ids=str)
def test_sample_on_other_targets(executor: Executor, case: Case) -> None:
    check(executor, case)


@pytest.mark.slow
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("dtype", cross.DTYPES)
@pytest.mark.parametrize("head_size", cross.HEAD_SIZES)
def test_full_cross(executor: Executor, head_size: int, dtype: str) -> None:
    """The whole of it, some 6,500 launches a test; the failures are listed together."""
    failures = []
    for case in full_cross():
        if (case.head_size, case.dtype) == (head_size, dtype):
            problem = case.problem()
            try:
                error = problem.error(executor)
            except EmulatorError as finding:
                failures.append(f"{case}: {finding}")
            else:
                if not error <= problem.tolerance:
                    failures.append(f"{case}: {error}")
    assert not failures, f"{len(failures)} failures, the first: {failures[:10]}"


def test_the_sample_has_every_pair_of_values() -> None:
    assert [field.name for field in dataclasses.fields(Case)] == list(AXES)
    for one, other in itertools.combinations(AXES, 2):
        found = {(getattr(case, one), getattr(case, other)) for case in sample()}
        assert found == set(itertools.product(AXES[one], AXES[other])), (one, other)
