"""``rdna-bench plan``: the plain transcription plans like the registry, and the command says what it measured."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import assert_refused, invoke
from hypothesis import given
from hypothesis import strategies as st
from rdna_bench.plain_planner import plan_plainly
from rdna_bench.plan_balance import balance
from rdna_bench.plan_batches import SIZES, DecodeBatch
from rdna_bench.timing import Spread, Timed, interleave, ratio
from rdna_registry import DType, KernelVariant, PrefillVariant, plan_prefill, prefill_target_workgroups

GOLDEN = Path(__file__).parents[2] / "rdna-registry" / "tests" / "data" / "plans.npz"
SPREAD = {"median", "lower", "upper"}


def prefill_variant(q_heads: int, kv_heads: int, waves: int, key_tile: int, split: int, key_waves: int) -> Any:
    return PrefillVariant(128, q_heads, kv_heads, 0, 16, 128, waves, key_tile, split, 0, 0, key_waves, 16, 8)


def test_the_transcription_equals_the_golden_plans() -> None:
    if not GOLDEN.is_file():
        pytest.skip("the golden plans of rdna-registry's tests are not here")
    data = np.load(GOLDEN)
    cases = data["cases"].tolist()
    assert len(cases) == 60
    for number, case in enumerate(cases):
        _, q_heads, kv_heads, window, waves, key_tile, split, key_waves, target, head_group, planned_group = case
        variant = prefill_variant(q_heads, kv_heads, waves, key_tile, split, key_waves)
        starts, lengths, wanted = (data[f"c{number}_{name}"] for name in ("qsl", "seq", "plan"))
        plan, group = plan_plainly(starts, lengths, variant, window, target, head_group)
        assert plan.dtype == np.int32
        np.testing.assert_array_equal(plan, wanted)
        assert group == planned_group


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(-5, 20000)), min_size=1, max_size=30),
    st.one_of(st.just(0), st.integers(1, 3000)),
    st.integers(1, 400),
)
def test_the_transcription_equals_the_planner(batch: list[tuple[int, int]], window: int, target: int) -> None:
    variant = prefill_variant(24, 4, 8, 32, 2, 1)
    starts = np.cumsum([0, *(queries for queries, _ in batch)]).astype(np.int32)
    lengths = np.array([max(0, queries + context) for queries, context in batch], np.int32)
    plan, group = plan_plainly(starts, lengths, variant, window, target, 3)
    wanted, wanted_group = plan_prefill(starts, lengths, variant, window, target, 3)
    np.testing.assert_array_equal(plan, wanted)
    assert group == wanted_group


def test_json() -> None:
    result = invoke("plan", "--repeats", "3", "--target", "gfx1100", "--window", "900", "--seed", "5", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    run = json.loads(result.stdout)
    assert (run["command"], run["target"], run["window"], run["repeats"], run["seed"]) == ("plan", "gfx1100", 900, 3, 5)
    assert run["target_workgroups"] == prefill_target_workgroups("gfx1100")
    assert set(run["machine"]) == {"processor", "cores", "load", "system", "python", "numpy"}
    assert run["machine"]["numpy"] == np.__version__
    assert run["passed"]
    assert PrefillVariant.from_name(run["prefill_variant"]).num_q_heads == 32
    assert KernelVariant.from_name(run["decode_variant"]).batched

    assert [case["sequences"] for case in run["prefill"]] == [*SIZES] * 3
    for case in run["prefill"]:
        assert case["lengths"] in ("short", "chunks", "one long")
        assert case["plans_equal"]
        assert 1 <= case["entries_fewest"] <= case["entries_most"]
        assert case["entries_fewest"] >= case["sequences"]
        for name in ("plain_us", "planner_us", "plain_over_planner", "unchanged_us"):
            assert set(case[name]) == SPREAD
            assert 0 < case[name]["lower"] <= case[name]["median"] <= case[name]["upper"]
    assert [case["sequences"] for case in run["decode"]] == [*SIZES]
    for case in run["decode"]:
        assert case["rows"] >= case["sequences"]
        assert set(case["planner_us"]) == set(case["unchanged_us"]) == SPREAD
    assert {"variant_for, tuned", "select, derived", "prefill_variant_for"} <= set(run["look_ups_us"])
    assert all(set(times) == SPREAD for times in run["look_ups_us"].values())
    assert {row["kind"] for row in run["decode_balance"]} == {"uniform", "ragged", "padded"}
    for row in run["decode_balance"]:
        assert row["ratio"] == row["by_batch_size"] / row["planned"]
        assert row["rows"] <= row["capacity"]


def test_tables() -> None:
    result = invoke("plan", "--repeats", "3")
    assert result.exit_code == 0, result.output
    for text in ("plan_prefill", "plan_decode", "look-ups, warm", "one long", "uniform", "ragged", "padded"):
        assert text in result.stdout
    assert f"NumPy {np.__version__}" in result.stdout
    assert "plans are those of the transcription" in result.stdout


def test_other_plans_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: Any) -> Any:
        plan, head_group = plan_plainly(*arguments)
        return plan[::-1], head_group

    monkeypatch.setattr("rdna_bench.plan_run.plan_plainly", wrong)
    result = invoke("plan", "--repeats", "3", "--json")
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["passed"]
    assert "verification failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "2"], "2 given; it must be 3 or more"),
        (["--repeats", "often"], "--repeats"),
        (["--window", "-1"], "-1 given; it must be 0 or more"),
        (["--window", "2147483648"], "window is 2147483648; allowed: 0 to 2147483647"),
        (["--seed", "-1"], "-1 given; it must be 0 or more"),
        (["--target", "gfx9"], "target is 'gfx9'; allowed: one of gfx1151, gfx1100"),
    ],
)
def test_bad_options(arguments: list[str], message: str) -> None:
    assert_refused(message, "plan", *arguments)


@pytest.mark.parametrize(
    ("lengths", "planned", "by_batch_size"),
    [
        ([640, 0, 0, 0], 2, 7),  # 20 blocks: 10 rows of the list, 3 segments by the rule
        ([640] * 4, 7, 7),
        ([6400] + [32] * 19, 20, 200),
        ([320, 320], 2, 2),
    ],
)
def test_balance(lengths: list[int], planned: int, by_batch_size: int) -> None:
    variant = KernelVariant(128, 32, 8, 1, 16, 1, waves=2, dtype=DType.fp16, batched=1)
    seq_lens = np.array(lengths, np.int32)
    row = balance(DecodeBatch("any", "any", (seq_lens > 0).astype(np.int32), seq_lens), variant, 0, 80)
    assert (row.planned, row.by_batch_size) == (planned, by_batch_size)
    assert row.slots == len(lengths)
    assert row.mean == sum(-(-length // 32) for length in lengths) * 8 / 80


def test_interleaved_times() -> None:
    order: list[str] = []
    one, other = (Timed(functools.partial(order.append, name), calls=4) for name in "ab")
    assert list(interleave([one, other], 3)) == [1, 2, 3]
    assert len(one.microseconds) == len(other.microseconds) == 3
    turns = "".join(name for name, previous in zip(order, ["", *order[:-1]], strict=True) if name != previous)
    assert turns == "abab"  # a b, then b a, then a b
    one.microseconds, other.microseconds = [4.0, 9.0, 6.0], [2.0, 3.0, 6.0]
    assert ratio(one, other) == Spread(2.0, 1.5, 2.5)
