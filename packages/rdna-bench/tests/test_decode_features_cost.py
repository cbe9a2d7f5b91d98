"""``rdna-bench decode --features``: what each feature adds, and what a call without any does not pay."""

from __future__ import annotations

import pytest
from command import invoke, invoke_json
from rdna_bench.decode_features import ALL, FEATURES, OFF

SHAPE = ("--num-q-heads", "8", "--num-kv-heads", "2", "--context", "900", "--num-seqs", "2")


def test_costs_of_features() -> None:
    result = invoke_json("decode", "--features", *SHAPE)
    costs = {cost["features"]: cost for cost in result["costs"]}
    assert list(costs) == [OFF, *FEATURES, ALL]
    plain = invoke_json("decode", *SHAPE)
    assert costs[OFF]["wave_instructions"] == plain["wave_instructions"]
    assert costs[OFF]["added"] == 0
    for name in (*FEATURES, ALL):
        added = costs[name]["wave_instructions"] / costs[OFF]["wave_instructions"] - 1
        assert costs[name]["added"] == added
        assert costs[name]["build"] == costs[OFF]["build"]
    assert costs["softcap"]["added"] > 0.05
    assert costs["sinks"]["transcendental"] > costs[OFF]["transcendental"]


def test_the_table_of_features() -> None:
    result = invoke("decode", "--features", *SHAPE)
    assert result.exit_code == 0, result.output
    assert "8/2 x 64, 2 x 900 tokens, 1 new, fp16, on gfx1151, emulated" in result.stdout
    assert all(name in result.stdout for name in (OFF, *FEATURES, ALL))


def test_a_shape_that_no_build_serves() -> None:
    result = invoke("decode", "--features", "--head-size", "70")
    assert result.exit_code == 2
    assert "70" in result.stderr


@pytest.mark.parametrize("other", [("--verify",), ("--checks", "all"), ("--table",)], ids=str)
def test_options_that_features_would_not_follow_are_refused(other: tuple[str, ...]) -> None:
    result = invoke("decode", "--features", *SHAPE, *other)
    assert result.exit_code == 2
    assert "goes without --table, --verify and --checks" in " ".join(result.output.replace("│", " ").split())
