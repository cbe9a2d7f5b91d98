from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_catalogue import entry, fake_catalogue, write_catalogue
from problem import make_problem
from rdna_emulator import CHECKS
from rdna_kernels import ArgumentError, Catalogue, EmulatedExecutor, ExecutorError, LaunchRecord, MissingBuildError
from rdna_kernels.executors.choice import default_emulated, executor_for
from rdna_registry import DEFAULT_TARGET, TARGETS, builds


def test_numpy_arrays_run_on_the_emulated_default_target() -> None:
    records: list[LaunchRecord] = []
    problem = make_problem([20])
    assert problem.run(None, report=records) is not None
    assert (records[0].executor, records[0].target) == ("emulated", DEFAULT_TARGET)
    assert records[0].counts["wave_instructions"] > 0
    assert executor_for({"q": problem.q}) is default_emulated()


def test_properties_are_the_targets() -> None:
    for listed in TARGETS:
        properties = EmulatedExecutor(listed.name).properties
        assert properties.target == listed.name
        assert properties.multiprocessors == listed.multiprocessors
        assert properties.lds_bytes == listed.lds_bytes


def test_an_unknown_target_is_named_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"gfx942.*gfx1151"):
        EmulatedExecutor("gfx942")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checks": "wiats"}, "checks holds 'wiats'; it may be 'all', or names among waits, uninitialised"),
        ({"checks": ["waits", 5]}, "checks holds 5; it may be 'all', or names among waits"),
        ({"checks": 5}, "checks is 5; it may be 'all', or names among waits"),
        ({"checks": None}, "checks is None; it may be"),
        ({"schedule": "rnd"}, "schedule is 'rnd'; it may be None or 'random'"),
        ({"schedule": 5}, "schedule is 5; it may be None or 'random'"),
        *[
            ({"seed": seed}, f"seed is {seed!r}; it may be an integer from 0 to {2**64 - 1}")
            for seed in ("a", None, 1.5, -1, 2**64, 2**70)
        ],
        *[
            ({"threads": threads}, f"threads is {threads!r}; it may be an integer from 1 to 1024")
            for threads in ("2", 1.5, 0, -1, 1025, True, np.True_)
        ],
        ({"catalogue": "x"}, "catalogue is 'x'; it may be None .* or an rdna_kernels.Catalogue"),
    ],
)
def test_options_that_are_not_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        EmulatedExecutor(**options)


def test_options_that_are_allowed() -> None:
    for name in (*CHECKS, "all"):
        assert EmulatedExecutor(checks=name, threads=1).checks == name
    executor = EmulatedExecutor(checks=iter(CHECKS), schedule="random", seed=np.uint64(2**64 - 1), threads=np.int32(1))
    assert (executor.checks, executor.schedule, executor.seed) == (CHECKS, "random", 2**64 - 1)


def test_without_the_emulator_the_command_that_helps_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdna_emulator", None)
    with pytest.raises(ExecutorError, match=r"pip install 'rdna-kernels\[emulator\]'"):
        EmulatedExecutor()


@pytest.mark.parametrize("fault", ["another target", "truncated", "not ELF", "empty"])
def test_a_code_object_that_cannot_run_is_refused(tmp_path: Path, fault: str) -> None:
    installed = Catalogue.installed()
    fake_catalogue(tmp_path)
    for build in builds(DEFAULT_TARGET):
        good = installed.code(build.name, DEFAULT_TARGET)
        code = {
            "another target": installed.code(build.name, "gfx1100"),
            "truncated": good[: len(good) // 2],
            "not ELF": b"#!/bin/sh\n" + good,
            "empty": b"",
        }[fault]
        (tmp_path / DEFAULT_TARGET / f"{build.name}.hsaco").write_bytes(code)
    problem = make_problem([20])
    out = np.full(problem.q.shape, 7, np.float16)
    message = (
        r"the emulated gfx1151 refuses a code object: .*built targets: gfx1151.*\.hsaco .*uv sync --reinstall-package"
    )
    with pytest.raises(ExecutorError, match=message):
        problem.run(EmulatedExecutor(catalogue=Catalogue(tmp_path)), out=out)
    assert (out == 7).all()


def test_a_code_object_without_its_kernel_is_refused(tmp_path: Path) -> None:
    catalogue = fake_catalogue(tmp_path)
    first, second = sorted(record.name for record in catalogue.records)[:2]
    code = Catalogue.installed().code(first, DEFAULT_TARGET)
    (tmp_path / DEFAULT_TARGET / f"{second}.hsaco").write_bytes(code)
    message = rf"the code object of {second} holds no such kernel, but: {first}.*; .*/{second}\.hsaco "
    with pytest.raises(ExecutorError, match=message):
        EmulatedExecutor(catalogue=catalogue).build_function(second)


@pytest.mark.parametrize("code", [b"", b"\x7fELF", b"#!/bin/sh"], ids=["empty", "truncated", "a script"])
def test_a_damaged_build_of_the_users_is_named_with_the_command_that_helps(tmp_path: Path, code: bytes) -> None:
    name = builds(head_sizes=(72,))[0].name
    user = tmp_path / "user" / DEFAULT_TARGET
    user.mkdir(parents=True)
    (user / f"{name}.json").write_text(json.dumps(entry(name, DEFAULT_TARGET)))
    (user / f"{name}.hsaco").write_bytes(code)
    catalogue = Catalogue(write_catalogue(tmp_path / "wheel", DEFAULT_TARGET, {}).folder, tmp_path / "user")
    message = (
        rf"{user}/{name}\.hsaco was built on this machine: remove it, and build it again with "
        f"`python -m rdna_kernels build --target {DEFAULT_TARGET} --head-size 72`"
    )
    with pytest.raises(ExecutorError, match=message):
        EmulatedExecutor(catalogue=catalogue).build_function(name)
    (user / f"{name}.hsaco").unlink()
    with pytest.raises(MissingBuildError, match=message):
        EmulatedExecutor(catalogue=catalogue).build_function(name)


def test_the_manifest_is_plain_json() -> None:
    manifest = json.loads((Catalogue.installed().folder / "manifest.json").read_text())
    assert len(manifest["builds"]) == len(Catalogue.installed().records)


def test_there_are_no_streams_to_launch_on() -> None:
    executor = EmulatedExecutor()
    function = executor.build_function(builds(DEFAULT_TARGET)[0].name)
    with pytest.raises(ArgumentError, match="has no streams"):
        executor.launch(function, (1, 1, 1), 32, b"", [], stream=1)
