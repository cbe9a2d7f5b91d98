"""Every tuned entry of the registry against float64, with every check on: all 1280 with `--all`, else a sample.

All modelled entries too, each on the target that it is for.

`--all` took 3 minutes of one core for each target.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pytest
from rdna_kernels import Executor, LaunchRecord
from rdna_registry import DEFAULT_TARGET, TARGETS, KernelVariant, variants
from rdna_registry.decode_modelled import CLEAR_GAIN_PERCENT, modelled_rows
from tuned_entries import features, problems, sample
from verdict import judge

OTHER_TARGETS = [target.name for target in TARGETS if target.name != DEFAULT_TARGET]
Record = Callable[[str, object], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = metafunc.config.getoption("--all", default=False)
    tuned = variants() if every else sample()
    sets = {
        "entry": tuned,
        "entry_elsewhere": tuned if every else tuned[::4],
        "modelled": modelled([DEFAULT_TARGET]),
        "modelled_elsewhere": modelled(OTHER_TARGETS),
    }
    for argument in sets.keys() & {*metafunc.fixturenames}:
        metafunc.parametrize(argument, sets[argument], ids=lambda entry: entry.name)


def modelled(targets: Sequence[str]) -> list[KernelVariant]:
    """The entries of the targets' modelled rows that `select` takes."""
    rows = (row for row in modelled_rows() if row.target in targets)
    return [row.variant for row in rows if row.gain_percent >= CLEAR_GAIN_PERCENT]


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
def test_tuned_entry(executor: Executor, entry: KernelVariant, record_property: Record) -> None:
    check(executor, entry, record_property)


@pytest.mark.parametrize("target", OTHER_TARGETS, indirect=True)
def test_tuned_entry_on_other_targets(
    executor: Executor, entry_elsewhere: KernelVariant, record_property: Record
) -> None:
    check(executor, entry_elsewhere, record_property)


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
def test_modelled_entry(executor: Executor, modelled: KernelVariant, record_property: Record) -> None:
    check(executor, modelled, record_property, "modelled: ")


@pytest.mark.parametrize("target", OTHER_TARGETS, indirect=True)
def test_modelled_entry_on_other_targets(
    executor: Executor, modelled_elsewhere: KernelVariant, record_property: Record
) -> None:
    check(executor, modelled_elsewhere, record_property, "modelled: ")


def check(executor: Executor, entry: KernelVariant, record_property: Record, origin: str = "tuned: ") -> None:
    worst = 0.0
    for problem in problems(entry):
        records: list[LaunchRecord] = []
        verdict = judge(problem, problem.exact(), executor, variant=entry, report=records)
        assert verdict.fault is None, (problem.seq_lens.tolist(), verdict)
        assert records[0].build == entry.build.name
        assert records[0].provenance.startswith(origin)
        worst = max(worst, verdict.error)
    record_property(f"largest relative error, {entry.dtype.name}", worst)


def test_the_sample_has_every_build_and_every_pair_of_values() -> None:
    wanted = frozenset[Hashable]().union(*map(features, variants()))
    assert frozenset[Hashable]().union(*map(features, sample())) == wanted
    assert len(variants()) == 1280
    assert len(sample()) < 150
