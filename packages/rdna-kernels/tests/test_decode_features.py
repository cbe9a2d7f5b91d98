"""Sinks, softcap, ALiBi, lse and the work list, against float64 on the machine code with every check on."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import relative_error
from problem import DTYPES, Problem, make_problem
from rdna_kernels import ArgumentError, Catalogue, Executor, LaunchRecord, decode_attention
from rdna_kernels.decode_arguments import DECODE_ARGUMENTS
from rdna_kernels.decode_arguments import FEATURES as FEATURE_BITS
from rdna_kernels.executors import EmulatedExecutor
from rdna_kernels.executors.interface import Function
from rdna_kernels.packing import Packer
from rdna_registry import DEFAULT_TARGET, plan_decode
from recording_executor import RecordingExecutor, unpack
from verdict import entry_of, lse_is_right, plan_of, segments_of

FEATURES: dict[str, dict[str, Any]] = {
    "sinks": {"sinks": True},
    "softcap": {"softcap": 3.0},
    "alibi": {"alibi": True},
    "all": {"sinks": True, "softcap": 20.0, "alibi": True},
}


def assert_right(problem: Problem, executor: Executor, **options: Any) -> None:
    lse = np.full(problem.q.shape[:2], np.nan, np.float32)
    got = problem.run(executor, lse=lse, **options)
    wanted, wanted_lse = problem.exact_with_lse()
    assert relative_error(got, wanted) <= problem.tolerance
    assert lse_is_right(lse, wanted_lse)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(
    "shape",
    [
        {"lengths": [300], "max_query_len": 2},
        {"lengths": [1100, 3, 0, 17], "max_query_len": 3, "page_size": 48, "dtype": "bfloat16"},
        {"lengths": [600, 90], "head_size": 128, "gqa": 7, "max_query_len": 4, "window": 100},
        {"lengths": [700], "head_size": 128, "gqa": 8, "max_query_len": 8},
        {"lengths": [1500], "gqa": 8, "max_query_len": 5, "layout": "NHD"},
        {"lengths": [130, 900], "head_size": 80, "gqa": 3, "max_query_len": 2},
        {"lengths": [200], "head_size": 96, "gqa": 12, "max_query_len": 3, "dtype": "bfloat16"},
        {"lengths": [700], "head_size": 192, "gqa": 5, "max_query_len": 1, "window": 300},
        {"lengths": [600, 2], "head_size": 256, "gqa": 8, "max_query_len": 4},
        {"lengths": [500], "head_size": 512, "gqa": 6, "num_kv_heads": 1, "max_query_len": 2},
    ],
    ids=lambda shape: f"h{shape.get('head_size', 64)}-S{'-'.join(map(str, shape['lengths']))}",
)
def test_a_feature(executor: Executor, features: str, shape: dict[str, Any]) -> None:
    assert_right(make_problem(**shape, **FEATURES[features]), executor)


@pytest.mark.parametrize("target", [DEFAULT_TARGET], indirect=True)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(0, 400), min_size=1, max_size=3),
    head_size=st.sampled_from([64, 128]),
    gqa=st.integers(1, 16),
    max_query_len=st.integers(1, 20),
    window=st.one_of(st.just(0), st.integers(1, 300)),
    dtype=st.sampled_from(sorted(DTYPES)),
    scale=st.one_of(st.none(), st.floats(-0.1, 0.1)),
    sinks=st.booleans(),
    softcap=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e6]),
    alibi=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_features_together(executor: Executor, lengths: list[int], **shape: Any) -> None:
    assert_right(make_problem(lengths, **shape), executor)


@pytest.mark.parametrize("sink", [-np.inf, -200.0, 90.0, 1e4])
def test_sinks_far_from_the_scores(executor: Executor, sink: float) -> None:
    problem = make_problem([1100, 40], sinks=True)
    problem.sinks = np.full(8, sink, np.float32)
    assert_right(problem, executor)


def test_lse_into_a_view_leaves_the_rest_alone(executor: Executor) -> None:
    problem = make_problem([70, 9], max_query_len=2)
    whole = np.full((20, 9), np.nan, np.float32)
    problem.run(executor, lse=whole[2:18:2, 1:5].T)
    np.testing.assert_allclose(whole[2:18:2, 1:5].T, problem.exact_with_lse()[1], atol=3e-5)
    whole[2:18:2, 1:5] = np.nan
    assert np.isnan(whole).all()


@pytest.mark.parametrize("features", [{}, FEATURES["all"]], ids=["plain", "all"])
@pytest.mark.parametrize(
    ("lengths", "window", "bound"), [([1500, 3, 0, 90], 0, 0), ([1500, 3, 0, 90], 0, 700), ([40, 1200, 1200], 200, 64)]
)
def test_a_plan(executor: Executor, features: dict[str, Any], lengths: list[int], window: int, bound: int) -> None:
    problem = make_problem(lengths, max_query_len=2, window=window, page_size=32, **features)
    for target_workgroups in (1, 40, 300):
        assert_right(problem, executor, plan=plan_of(problem, target_workgroups, bound))


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_in_any_order_of_workgroups(target: str, executor: Executor, seed: int) -> None:
    problem = make_problem([1500, 2, 700], gqa=4, max_query_len=2)
    plan = plan_of(problem, 64)
    shuffled = EmulatedExecutor(target, checks="all", schedule="random", seed=seed)
    got, wanted = problem.run(shuffled, plan=plan), problem.run(executor, plan=plan)
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))


class FeaturesFilledIn(EmulatedExecutor):
    """Launches with every argument of features set, whatever the call has."""

    kernels: list[str]

    def launch(self, function: Function, grid: Any, block: int, arguments: bytes, *rest: Any) -> Any:
        self.kernels = [*getattr(self, "kernels", []), function.name]
        values = unpack(arguments) | {"features": sum(FEATURE_BITS.values()), "softcap": 1.0, "softcap_inverse": 1.0}
        return super().launch(function, grid, block, Packer(DECODE_ARGUMENTS).pack(values), *rest)


@pytest.mark.parametrize("shape", [{"lengths": [300]}, {"lengths": [3000], "num_kv_heads": 1}], ids=["whole", "split"])
def test_features_that_are_off_cost_nothing(target: str, shape: dict[str, Any]) -> None:
    """The kernel of a call without features asks for none: it does the same whatever their arguments hold."""
    problem, records = make_problem(**shape), list[LaunchRecord]()
    assert shape["lengths"] == [300] or segments_of(entry_of(problem, target), 3000) > 1
    plain, filled = EmulatedExecutor(target), FeaturesFilledIn(target)
    one, other = (problem.run(executor, report=records) for executor in (plain, filled))
    np.testing.assert_array_equal(one, other)
    assert records[0].counts["wave_instructions"] == records[1].counts["wave_instructions"]
    assert filled.kernels == [records[0].build]


@pytest.mark.parametrize("feature", ["sinks", "softcap", "alibi", "lse", "plan"])
def test_each_feature_takes_the_second_kernel(target: str, feature: str) -> None:
    problem = make_problem(
        [300], sinks=feature == "sinks", softcap=3.0 * (feature == "softcap"), alibi=feature == "alibi"
    )
    options: dict[str, Any] = {}
    if feature == "lse":
        options["lse"] = np.zeros(problem.q.shape[:2], np.float32)
    if feature == "plan":
        options["plan"] = plan_of(problem, 16, entry=entry_of(problem, target))
    executor = RecordingExecutor(Catalogue.installed(), target)
    problem.run(executor, **options)
    [launch] = executor.launches
    assert launch["name"] == entry_of(problem, target).build.name + "_features"
    assert launch["arguments"]["features"] == FEATURE_BITS[feature]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sinks": np.zeros(7, np.float32)}, r"sinks has shape \(7,\); it must be \[num_q_heads\] = \[8\]"),
        ({"sinks": np.zeros(8)}, "sinks has dtype float64; it must be float32"),
        ({"alibi_slopes": np.zeros(16, np.float32)[::2]}, "alibi_slopes has a last dimension"),
        ({"alibi_slopes": np.zeros((8, 1), np.float32)}, "alibi_slopes has shape"),
        ({"softcap": -1.0}, "softcap is -1.0; it must be 0 .* or 0.001 to 1e\\+06"),
        ({"softcap": float("nan")}, "softcap is nan"),
        ({"softcap": "30"[:0]}, "softcap is ''; it must be a number"),
        ({"lse": np.zeros((2, 8), np.float16)}, "lse has dtype float16; it must be float32"),
        ({"lse": np.zeros((8, 2), np.float32)}, r"lse has shape \(8, 2\)"),
        ({"lse": np.broadcast_to(np.zeros((1, 8), np.float32), (2, 8))}, "lse has overlapping strides"),
        ({"plan": np.zeros((3, 3), np.int32)}, r"plan has shape \(3, 3\)"),
        ({"plan": np.zeros((3, 4), np.int64)}, "plan has dtype int64; it must be int32"),
        ({"plan": np.zeros((0, 4), np.int32)}, "at least one row"),
        ({"plan": np.array([[2, 1 << 16, 0, 9]], np.int32)}, r"plan\[0\] is \[2, 65536, 0, 9\]; .* below 2"),
        ({"plan": np.array([[0, 2 << 16, 0, 9]], np.int32)}, "plan ends within the segments of sequence 0"),
        ({"plan": np.array([[0, 2 << 16, 0, 9], [1, 1 << 16, 0, 1]], np.int32)}, r"plan\[1\] is \[1, 65536, 0, 1\]"),
        ({"plan": np.array([[0, 1 << 16, 0, 9], [0, 1 << 16, 0, 1]], np.int32)}, r"plan\[1\] is \[0, 65536, 0, 1\]"),
    ],
)
def test_bad_features_are_refused_before_anything_is_written(
    executor: Executor, given: dict[str, Any], message: str
) -> None:
    problem = make_problem([70, 9])
    out = np.full(problem.q.shape, 7, np.float16)
    options = {name: value for name, value in given.items() if name in ("lse", "plan")}
    for name in given.keys() - options.keys():
        setattr(problem, name, given[name])
    with pytest.raises(ArgumentError, match=message):
        problem.run(executor, out=out, **options)
    assert (out == 7).all()


def test_outputs_share_no_memory_with_anything(executor: Executor) -> None:
    problem = make_problem([70, 9])
    memory = np.zeros((2, 8), np.float32)
    problem.sinks = memory[0]
    with pytest.raises(ArgumentError, match="lse shares memory with sinks"):
        problem.run(executor, lse=memory)


def test_every_pair_of_features_has_its_own_prepared_call(executor: Executor) -> None:
    """What one call prepared must not serve another with other features."""
    names = ("sinks", "softcap", "alibi")
    for used in itertools.product([False, True], repeat=3):
        features: dict[str, Any] = {
            name: (5.0 if name == "softcap" else True) for name, on in zip(names, used, strict=True) if on
        }
        assert_right(make_problem([50], **features), executor)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("sinks", [0.0, np.nan, 0.0, 0.0], r"sinks\[1\] is nan"),
        ("sinks", [0.0, 0.0, np.inf, 0.0], r"sinks\[2\] is inf.*or -inf"),
        ("sinks", [3e38, 0.0, 0.0, 0.0], r"sinks\[0\].*at most 1e\+06"),
        ("alibi_slopes", [0.0, np.nan, 0.0, 0.0], r"alibi_slopes\[1\] is nan"),
        ("alibi_slopes", [0.0, 0.0, 0.0, -np.inf], r"alibi_slopes\[3\] is -inf"),
        ("alibi_slopes", [1e30, 0.0, 0.0, 0.0], r"alibi_slopes\[0\].*at most 1000"),
        ("plan", [[0, 1 << 16, 2, 5]], r"plan\[0\]"),
        ("plan", [[0, 2 << 16, 0, 1], [0, 2 << 16 | 1, 3, 4]], r"plan\[1\].*without a gap"),
        ("plan", [[0, 2 << 16, 0, 4], [0, 2 << 16 | 1, 2, 5]], r"plan\[1\]"),
        ("plan", [[0, 1 << 16, 0, 5], [-1, -1, 5, 7]], r"plan\[1\]"),
        ("plan", [[-1, -1, -1, -1]], "plan has no row for sequence 0 of 1"),
    ],
)
@pytest.mark.parametrize("window", [0, 48])
def test_values_that_no_softmax_and_no_planner_has(name: str, values: list[object], message: str, window: int) -> None:
    q = np.zeros((1, 4, 64), np.float16)
    cache = np.zeros((30, 1, 16, 128), np.float16)
    table, lengths = np.arange(30, dtype=np.int32)[None], np.array([400], np.int32)
    out = np.full_like(q, 7)
    feature: dict[str, Any] = {name: np.array(values, np.int32 if name == "plan" else np.float32)}
    with pytest.raises(ArgumentError, match=message):
        decode_attention(
            q, cache, table, lengths, out=out, window=window, executor=EmulatedExecutor("gfx1151"), **feature
        )
    assert (out == 7).all()


def test_a_plan_that_leaves_a_sequence_out_is_refused_whatever_its_length(executor: Executor) -> None:
    for lengths in ([70, 9, 30], [70, 0, 30]):
        problem = make_problem(lengths)
        plan = plan_of(problem, 1)
        with pytest.raises(ArgumentError, match="plan has no row for sequence 1 of 3, whose output"):
            problem.run(executor, plan=plan[plan[:, 0] != 1])
        with pytest.raises(ArgumentError, match="plan has no row for sequence 1 of 3"):
            problem.run(executor, plan=plan_decode([1, 0, 1], problem.seq_lens, entry_of(problem), 0, 1))
        assert_right(problem, executor, plan=plan)
