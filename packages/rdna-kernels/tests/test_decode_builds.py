"""Every build on entries that need it, tuned ones where there are any; the build's name is the test's."""

from __future__ import annotations

import pytest
from problem import make_problem
from rdna_kernels import Executor, LaunchRecord
from rdna_registry import DEFAULT_TARGET, Build, KernelVariant, builds, example_entries
from verdict import fault_of


def entries(build: Build) -> list[KernelVariant]:
    """Entries with the fewest and the most rows, kv heads and window, single and batched."""
    found = example_entries(build)
    keys = (
        lambda entry: entry.gqa * entry.max_query_len // entry.row_groups,
        lambda entry: entry.num_kv_heads,
        lambda entry: entry.window,
        lambda entry: entry.batched,
    )
    return list(dict.fromkeys(choice(found, key=key) for key in keys for choice in (min, max)))


@pytest.mark.parametrize("build", builds(DEFAULT_TARGET), ids=lambda build: build.name)
def test_build(executor: Executor, build: Build) -> None:
    for entry in entries(build):
        long = min(entry.page_size * 2 + 300, 1500)
        for lengths in [[37, 0, long + 9]] if entry.batched else [[long], [17]]:
            problem = make_problem(
                lengths,
                head_size=entry.head_size,
                gqa=entry.gqa,
                num_kv_heads=entry.num_kv_heads,
                max_query_len=entry.max_query_len,
                page_size=entry.page_size,
                window=entry.window,
                dtype=entry.dtype.value,
            )
            records: list[LaunchRecord] = []
            fault = fault_of(problem, problem.exact(), executor, report=records, variant=entry)
            assert fault is None, (entry.name, lengths)
            assert records[0].build == build.name
            assert records[0].provenance.startswith(("tuned: ", "derived: "))
