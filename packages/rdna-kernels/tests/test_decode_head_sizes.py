"""Head sizes that no wheel has: multiples of 8, whose rows end within a step of the matrix instruction.

Their builds are compiled here, as a user would; whatever stands beside a row must neither be read nor be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_build import PACKAGE
from guarded_memory import at_end_of_mapping
from problem import Problem, make_problem, nan_filled
from rdna_kernels import Catalogue, EmulatedExecutor, Executor, LaunchRecord
from rdna_kernels.user_build import build
from rdna_registry import BUILDABLE_HEAD_SIZES, DEFAULT_TARGET, SERVED_HEAD_SIZES, TARGETS
from verdict import entry_of, fault_of

# One wave or several for a head, the last with less than the others; V through LDS and not; lanes that overlap.
HEAD_SIZES = (24, 72, 88, 120, 136, 264)
OTHER_TARGETS = [target.name for target in TARGETS if target.name != DEFAULT_TARGET]
LONG: dict[str, Any] = {"lengths": [1100], "gqa": 4, "page_size": 48}
RAGGED: dict[str, Any] = {"lengths": [130, 0, 17, 3], "gqa": 3, "max_query_len": 4, "layout": "NHD", "window": 40}
MANY_ROWS: dict[str, Any] = {"lengths": [90, 20], "gqa": 12, "max_query_len": 9, "num_kv_heads": 1}


# Head size, and the most that may be requested of what is needed: of V, lanes of 6 dimensions overlap at a row's end.
REQUESTED = [(72, 1.01), (80, 1.04), (88, 1.02), (96, 1.01), (120, 1.01), (136, 1.04), (192, 1.02)]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.fixture(scope="module")
def makes_builds(target: str, user: Path) -> Executor:
    return EmulatedExecutor(target, checks="all", catalogue=Catalogue(Catalogue.installed().folder, user))


def with_its_build(problem: Problem, executor: Executor, user: Path) -> Problem:
    wanted = entry_of(problem, executor.target).build
    if not (user / executor.target / f"{wanted.name}.json").exists():
        build(PACKAGE, user, [wanted], executor.target, lambda _: None)
    return problem


def without_a_byte_beside_the_rows(problem: Problem) -> Problem:
    """The same problem in arrays with 16 bytes of NaN after each row of q and of the cache, at the end of memory."""
    pages, heads, page_size, width = problem.kv_cache.shape
    cache = nan_filled((pages, heads, page_size, width + 8), problem.kv_cache.dtype)
    cache[..., :width] = problem.kv_cache
    q = nan_filled((*problem.q.shape[:2], problem.q.shape[2] + 8), problem.q.dtype)
    q[..., :-8] = problem.q
    problem.kv_cache = at_end_of_mapping(cache)[..., :width]
    problem.q = at_end_of_mapping(q)[..., :-8]
    return problem


def check(makes_builds: Executor, user: Path, head_size: int, shape: dict[str, Any], dtype: str) -> None:
    problem = with_its_build(make_problem(**shape, head_size=head_size, dtype=dtype), makes_builds, user)
    exact = problem.exact()
    assert fault_of(problem, exact, makes_builds) is None
    for name in ("q", "kv_cache"):
        setattr(problem, name, at_end_of_mapping(getattr(problem, name)))
    out = at_end_of_mapping(nan_filled(problem.q.shape, problem.q.dtype))
    assert fault_of(problem, exact, makes_builds, out=out) is None


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [LONG, RAGGED, MANY_ROWS], ids=["long", "ragged", "many rows"])
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_head_size(makes_builds: Executor, user: Path, head_size: int, shape: dict[str, Any], dtype: str) -> None:
    check(makes_builds, user, head_size, shape, dtype)


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_with_features(makes_builds: Executor, user: Path, head_size: int) -> None:
    check(makes_builds, user, head_size, {**RAGGED, "sinks": True, "softcap": 20.0, "alibi": True}, "float16")


@pytest.mark.parametrize("target", OTHER_TARGETS, indirect=True)
@pytest.mark.parametrize(("shape", "dtype"), [(LONG, "bfloat16"), (RAGGED, "float16")], ids=["long", "ragged"])
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_head_size_on_other_targets(
    makes_builds: Executor, user: Path, head_size: int, shape: dict[str, Any], dtype: str
) -> None:
    check(makes_builds, user, head_size, shape, dtype)


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_what_stands_beside_a_row_is_left_alone(makes_builds: Executor, user: Path, head_size: int) -> None:
    dense = with_its_build(make_problem([300, 20], head_size=head_size, gqa=3, max_query_len=2), makes_builds, user)
    wanted = dense.run(makes_builds)
    out = nan_filled((4, 6, head_size + 8), np.float16)
    got = without_a_byte_beside_the_rows(dense).run(makes_builds, out=out[..., :head_size])
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))
    assert np.isnan(out[..., head_size:]).all()


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@pytest.mark.parametrize(("head_size", "most"), REQUESTED)
def test_each_byte_is_asked_for_once(makes_builds: Executor, user: Path, head_size: int, most: float) -> None:
    """Requested bytes over those of the valid KV, q and out: lanes past a row's end ask for nothing."""
    problem = make_problem([2000], head_size=head_size, gqa=4, num_kv_heads=8)
    records: list[LaunchRecord] = []
    with_its_build(problem, makes_builds, user).run(makes_builds, report=records)
    needed = 2 * problem.q.nbytes + 2000 * 8 * 2 * head_size * 2
    assert 1 <= records[0].counts["global_bytes_requested"] / needed <= most


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("head_size", sorted({*BUILDABLE_HEAD_SIZES} - {*SERVED_HEAD_SIZES}))
def test_every_head_size(target: str, makes_builds: Executor, user: Path, head_size: int) -> None:
    for shape in (LONG, RAGGED, MANY_ROWS):
        problem = with_its_build(make_problem(**shape, head_size=head_size), makes_builds, user)
        assert fault_of(problem, problem.exact(), makes_builds) is None, shape
