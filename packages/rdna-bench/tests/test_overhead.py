"""``rdna-bench overhead``: the table of where the host's time goes."""

from __future__ import annotations

import json

import pytest
from command import invoke
from rdna_bench.overhead_run import WARM


def test_json() -> None:
    result = invoke("overhead", "--repeats", "3", "--limit", "10000", "--json")
    assert result.exit_code == 0, result.output
    run = json.loads(result.stdout)
    assert (run["command"], run["target"], run["repeats"], run["limit_us"]) == ("overhead", "gfx1151", 3, 10000.0)
    assert run["runtime"].startswith("HIP ")
    assert run["passed"]
    least = {part["name"]: part["least_us"] for part in run["parts"]}
    for part in run["parts"]:
        assert 0 < part["least_us"] <= part["median"] <= part["upper"]
    assert {part["kind"] for part in run["parts"]} == {"call", "part", "array"}
    accounted = sum(part["least_us"] for part in run["parts"] if part["kind"] == "part")
    assert run["rest_us"] == pytest.approx(least[WARM] - accounted)
    # What is prepared is not prepared again: a new address costs more, and not many times more.
    assert least[WARM] < least["with an output at a new address"]


def test_tables() -> None:
    result = invoke("overhead", "--repeats", "3", "--limit", "10000")
    assert result.exit_code == 0, result.output
    for text in (WARM, "launching switched off", "everything else", "within the limit of 10000 us", "9 NumPy arrays"):
        assert text in result.stdout


def test_a_slow_call_is_a_failure() -> None:
    result = invoke("overhead", "--repeats", "3", "--limit", "0.001")
    assert result.exit_code == 1
    assert "above the limit of 0.001 us" in result.stdout


def test_a_runtime_without_a_served_device_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDNA_EMULATED_HIP", "/no/such/library.so")
    result = invoke("overhead", "--repeats", "3")
    assert result.exit_code == 2
    assert "/no/such/library.so" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--repeats", "2"], "2 given; it must be 3 or more"), (["--limit", "0"], "0.0 given; it must be above 0")],
)
def test_bad_options(arguments: list[str], message: str) -> None:
    result = invoke("overhead", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
