"""rdna-bench doctor: what it says of this machine, of a HIP device, and of what is missing or wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rdna_emulator
from command import invoke
from rdna_bench import doctor, self_test
from rdna_kernels import Catalogue, HipExecutor
from rdna_kernels.executors.hip_library import HipLibrary
from rdna_registry import TARGETS


@pytest.fixture(autouse=True)
def one_shape_and_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "SHAPES", self_test.SHAPES[:1])
    monkeypatch.setattr(doctor, "torch_text", lambda: "not asked")


def no_runtime(*_: object) -> tuple[list[HipExecutor], list[str]]:
    return [], ["no HIP runtime"]


def test_without_a_gpu_the_emulator_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "hip_executors", no_runtime)
    result = invoke("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    names = [target.name for target in TARGETS]
    assert [(test["executor"], test["target"]) for test in found["self_test"]] == [("emulated", name) for name in names]
    assert found["builds"].keys() >= set(names)
    assert found["refused"] == ["no HIP runtime"]
    assert found["passed"]
    text = invoke("doctor").stdout
    assert text.startswith("machine ")
    assert text.endswith("everything that was tried works\n")


def test_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "hip_executors", no_runtime)
    served = invoke("doctor", "--num-q-heads", "32", "--num-kv-heads", "8", "--head-size", "128").stdout
    assert "Built for: gfx1100, gfx1151." in served
    on_request = invoke("doctor", "--head-size", "72").stdout
    assert "Built for no target: python -m rdna_kernels build --target gfx1151 --head-size 72" in on_request
    assert "No entry: head_size is 70" in invoke("doctor", "--head-size", "70").stdout


def test_hip_devices_are_tried() -> None:
    executors, refused = doctor.hip_executors(HipLibrary(str(rdna_emulator.hip_library())))
    assert refused == []
    [test, *_] = self_test.self_test(executors, [], lambda _: None)
    assert (test.executor, test.passed) == ("hip", True), test


def test_a_wrong_result_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "hip_executors", no_runtime)
    monkeypatch.setattr(self_test, "decode_attention", lambda q, *_, **__: np.zeros_like(q))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "trial     FAILED: emulated" in result.stdout


def test_without_builds_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "hip_executors", no_runtime)
    monkeypatch.setattr(Catalogue, "installed", lambda: Catalogue(tmp_path))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "builds    none; there are no built kernels" in result.stdout


def test_torch_is_asked_in_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(doctor, "_version", lambda _: "2.0")
    (tmp_path / "torch.py").write_text("raise ImportError('libamdhip64.so.7 is not there')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert doctor.torch_text() == "2.0, which fails: ImportError: libamdhip64.so.7 is not there"


def test_rocm(tmp_path: Path) -> None:
    assert doctor.rocm_text(tmp_path / "rocm") == f"none in {tmp_path / 'rocm'}"
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info" / "version").write_text("7.0.2\n")
    assert doctor.rocm_text(tmp_path) == f"7.0.2 in {tmp_path}"


def test_a_target_that_the_user_has_built_is_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "hip_executors", no_runtime)
    catalogue = Catalogue.installed()
    [record, *_] = catalogue.records
    own = Catalogue(catalogue.folder)
    own.__dict__["records"] = (*catalogue.records, replace(record, target="gfx1150"))
    monkeypatch.setattr(Catalogue, "installed", lambda: own)
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "1 for gfx1150" in result.stdout
    assert "emulated gfx1150" not in result.stdout
