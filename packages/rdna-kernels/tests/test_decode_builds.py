"""Every build on entries that need it, tuned ones where there are any; the build's name is the test's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from problem import make_problem
from rdna_kernels import Executor, LaunchRecord
from rdna_registry import DEFAULT_TARGET, Build, DType, KernelVariant, builds, example_entries, plan_decode
from rdna_registry.decode_builds import short_builds
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
            given = dataclasses.replace(build, dtype=DType.fp16) in short_builds(build.head_size)
            assert records[0].provenance.startswith("given: " if given else ("tuned: ", "derived: "))


@pytest.mark.parametrize("build", builds(DEFAULT_TARGET), ids=lambda build: build.name)
def test_the_second_kernel_of_a_build(executor: Executor, build: Build) -> None:
    """Every feature at once, a work list for a batch: what calls with features take."""
    for entry in (min(example_entries(build), key=work), max(example_entries(build), key=work)):
        problem = make_problem(
            [330, 0, 41] if entry.batched else [entry.page_size + 40],
            head_size=entry.head_size,
            gqa=entry.gqa,
            num_kv_heads=1,
            max_query_len=entry.max_query_len,
            page_size=entry.page_size,
            window=entry.window,
            dtype=entry.dtype.value,
            sinks=True,
            softcap=20.0,
            alibi=True,
        )
        one_head = dataclasses.replace(entry, num_q_heads=entry.gqa, num_kv_heads=1, min_segment_blocks=1)
        lse = np.full(problem.q.shape[:2], np.nan, np.float32)
        options: dict[str, Any] = {"variant": one_head, "lse": lse}
        if entry.batched:
            query_lens = [entry.max_query_len] * len(problem.seq_lens)
            options["plan"] = plan_decode(query_lens, problem.seq_lens, one_head, entry.window, 24)
        assert fault_of(problem, problem.exact(), executor, **options) is None, entry.name


def work(entry: KernelVariant) -> tuple[int, int]:
    """Single entries with few rows of a workgroup first, batches with many last."""
    return entry.batched, entry.rows_per_group
