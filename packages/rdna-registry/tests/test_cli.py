from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from rdna_registry import KernelVariant, PrefillVariant, builds, explain, provenance, select, variants
from rdna_registry.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(arguments) == status
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    return json.loads(run(capsys, *arguments, "--json", status=status))


def test_list_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list").splitlines() == [entry.name for entry in variants()]
    assert len(run(capsys, "list", "--operation", "prefill").splitlines()) == 222


def test_list_filters(capsys: pytest.CaptureFixture[str]) -> None:
    filters = ["--head-size", "64", "--max-query-len", "8", "--dtype", "bfloat16", "--batch"]
    names = run(capsys, "list", *filters).splitlines()
    assert len(names) == 4
    for name in names:
        entry = KernelVariant.from_name(name)
        assert (entry.head_size, entry.max_query_len, entry.dtype.name, entry.batched) == (64, 8, "bf16", 1)
    assert len(run(capsys, "list", *filters[:-1], "--no-batch").splitlines()) == 4
    assert len(run(capsys, "list", *filters[:-1]).splitlines()) == 8


def test_list_prefill_filters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_json(capsys, "list", "--operation", "prefill", "--num-kv-heads", "32", "--min-query-len", "256")
    assert {PrefillVariant.from_name(row["name"]).num_kv_heads for row in rows} == {32}
    assert {row["min_query_len"] for row in rows} == {256}


def test_list_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list", "--head-size", "80", status=1) == ""
    assert run_json(capsys, "list", "--head-size", "80", status=1) == []


def test_list_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_json(capsys, "list", "--head-size", "64", "--num-q-heads", "14", "--dtype", "fp16", "--no-batch")
    assert len(rows) == 8
    entry = KernelVariant.from_name(rows[0]["name"])
    assert rows[0]["build"] == entry.build.name
    assert rows[0]["provenance"] == provenance(entry)
    assert (rows[0]["layout"], rows[0]["dtype"], rows[0]["waves"]) == ("HND", "fp16", entry.waves)


def test_builds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "builds", "--target", "gfx1100").splitlines()
    assert [line.split()[0] for line in lines] == [build.name for build in builds("gfx1100")]
    rows = run_json(capsys, "builds")
    assert [row["name"] for row in rows] == [build.name for build in builds()]
    assert {row["target"] for row in rows} == {"gfx1151"}
    assert sum(row["entries"] for row in rows) == sum(entry.build in builds() for entry in variants())


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    call = (9, 3, 64, 4, 32, 1, 100, "bf16", True)
    options = [
        "9",
        "3",
        "64",
        "--max-query-len",
        "4",
        "--page-size",
        "32",
        "--window",
        "100",
        "--dtype",
        "bf16",
        "--batch",
    ]
    assert run(capsys, "explain", *options).strip() == explain(*call)
    answer = run_json(capsys, "explain", *options)
    assert answer["reason"] == explain(*call)
    assert answer["entry"]["name"] == select(*call).name


def test_explain_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "explain", "8", "8", "70", status=1).startswith("No entry: head_size is 70;")
    assert run_json(capsys, "explain", "8", "8", "64", "--layout", "NHD", status=1)["entry"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["list", "--dtype", "fp32"], "dtype is 'fp32'; allowed: fp16"),
        (["list", "--head-size", "x"], "invalid int value: 'x'"),
        (["list", "--operation", "encode"], "invalid choice: 'encode'"),
        (["builds", "--target", "gfx90a"], "invalid choice: 'gfx90a'"),
        (["explain", "8", "8"], "head_size"),
        (["explain", "8", "8", "64", "--layout", "XYZ"], "invalid choice: 'XYZ'"),
    ],
    ids=str,
)
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_the_module_runs() -> None:
    command = [sys.executable, "-m", "rdna_registry", "explain", "14", "2", "64"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == explain(14, 2, 64, 1, 16, 1, 0, "fp16")


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["builds"]])
def test_a_reader_that_leaves_is_no_error(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "rdna_registry", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaints = process.stderr.read()
        assert process.wait() == 0
    assert "Error" not in complaints
    assert "Traceback" not in complaints
