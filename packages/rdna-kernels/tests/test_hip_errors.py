"""What people meet when something is missing: one message each, naming what was found and what helps."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from fake_catalogue import write_catalogue
from hip_stand_in import OnDevice, StandIn, put, stand_in
from problem import make_problem
from rdna_kernels import (
    ArgumentError,
    Catalogue,
    ExecutorError,
    HipExecutor,
    OutOfMemoryError,
    decode_attention,
)
from rdna_kernels.executors import hip_library
from rdna_registry import builds, select

ENTRY = select(8, 2, 64, 1, 16, 1, 0, "fp16", False)


def ready() -> OnDevice:
    return OnDevice(HipExecutor(), make_problem([40]), ENTRY)


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hip_library, "_opened", None)
    monkeypatch.setattr(hip_library, "_VERSIONED_NAMES", ("libno-such-hip.so.7", "libno-such-hip.so.6"))
    monkeypatch.setattr(hip_library, "loaded_library", lambda: None)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.delenv("RDNA_HIP_LIBRARY", raising=False)


@pytest.mark.usefixtures("no_runtime")
def test_no_runtime(tmp_path: Path) -> None:
    tried = rf"libno-such-hip\.so\.7, libno-such-hip\.so\.6, {re.escape(str(tmp_path))}/lib/libamdhip64\.so cannot"
    with pytest.raises(
        ExecutorError, match=rf"there is no HIP runtime: {tried}.*Install ROCm 6 or 7.*RDNA_HIP_LIBRARY"
    ):
        HipExecutor()


@pytest.mark.usefixtures("no_runtime")
def test_the_runtime_of_rocm_path_is_found(tmp_path: Path) -> None:
    with stand_in() as runtime:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "libamdhip64.so").symlink_to(runtime.path)
        os.environ["ROCM_PATH"] = str(tmp_path)
        del os.environ["RDNA_HIP_LIBRARY"]
        assert HipExecutor().library.path == f"{tmp_path}/lib/libamdhip64.so"


@pytest.mark.usefixtures("no_runtime")
def test_a_named_runtime_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDNA_HIP_LIBRARY", "/no/such/libamdhip64.so")
    with pytest.raises(ExecutorError, match=r"RDNA_HIP_LIBRARY is '/no/such/libamdhip64\.so', which cannot be opened"):
        HipExecutor()


@pytest.mark.usefixtures("no_runtime")
def test_a_library_that_is_no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDNA_HIP_LIBRARY", "libm.so.6")
    with pytest.raises(ExecutorError, match=r"libm\.so\.6 is no HIP runtime"):
        HipExecutor()


@pytest.mark.parametrize("name", ["libamdhip64.so.7", "libamdhip64.so", "libamdhip64-5b1c0d2e.so.6.2"])
def test_the_runtime_that_is_loaded_is_taken_before_any_other(tmp_path: Path, name: str) -> None:
    loaded = tmp_path / name
    shutil.copy(StandIn().path, loaded)
    program = (
        "import ctypes, sys\n"
        f"ctypes.CDLL({str(loaded)!r})\n"
        "from rdna_kernels.executors.hip_library import loaded_library\n"
        "print(loaded_library(), 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(loaded), "False"]


def test_a_runtime_that_is_too_old() -> None:
    with (
        stand_in(RDNA_EMULATED_VERSION="5.7.31921"),
        pytest.raises(ExecutorError, match=r"has version 5\.7\.31921; 6\.0 or newer is needed: update ROCm"),
    ):
        HipExecutor()


def test_no_device() -> None:
    with (
        stand_in(RDNA_EMULATED_DEVICES="none"),
        pytest.raises(ExecutorError, match=r"shows no device: check `rocminfo`.*HIP_VISIBLE_DEVICES"),
    ):
        HipExecutor()


@pytest.mark.parametrize("device", [2, -1, "cuda:0", True])
def test_a_device_that_is_not_there(device: Any) -> None:
    with (
        stand_in(RDNA_EMULATED_DEVICES="gfx1151,gfx1100"),
        pytest.raises(ArgumentError, match=rf"device is {device!r}; the HIP runtime shows devices 0 to 1"),
    ):
        HipExecutor(device)


@pytest.mark.parametrize("target", ["gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1152", "gfx1153"])
def test_a_target_that_can_be_built(target: str) -> None:
    message = (
        rf"is a {target}; kernels are built for gfx1100, gfx1151\. "
        rf"Build them with: python -m rdna_kernels build --target {target}"
    )
    with stand_in(RDNA_EMULATED_DEVICES=target), pytest.raises(ExecutorError, match=message):
        HipExecutor()


@pytest.mark.parametrize("target", ["gfx1170", "gfx115", "gfx11001", "gfx1201", "gfx942:sramecc+:xnack-", "gfx90a"])
def test_a_target_that_is_never_served_by_another_ones_builds(target: str) -> None:
    name = target.partition(":")[0]
    message = rf"is a {name}; kernels are built for gfx1100, gfx1151\. There are no kernels for {name}"
    with stand_in(RDNA_EMULATED_DEVICES=target), pytest.raises(ExecutorError, match=message):
        HipExecutor()


def test_an_overridden_target_is_warned_of() -> None:
    message = r"HSA_OVERRIDE_GFX_VERSION is 11\.0\.0.*gfx1100.*gfx1103, gfx1150, gfx1152, gfx1153 are served under"
    with stand_in(RDNA_EMULATED_DEVICES="gfx1103", HSA_OVERRIDE_GFX_VERSION="11.0.0"):
        with pytest.warns(RuntimeWarning, match=message):
            executor = HipExecutor()
        assert executor.target == "gfx1100"
    with stand_in(), warnings.catch_warnings():
        warnings.simplefilter("error")
        HipExecutor()


@pytest.mark.parametrize("fault", ["another target", "truncated", "not ELF", "empty"])
def test_a_code_object_that_the_runtime_refuses(tmp_path: Path, fault: str) -> None:
    installed, name = Catalogue.installed(), ENTRY.build.name
    good, other = (installed.code(name, target) for target in ("gfx1151", "gfx1100"))
    bad = {"another target": other, "truncated": good[: len(good) // 2], "not ELF": b"#!" + good, "empty": b""}
    catalogue = write_catalogue(tmp_path, "gfx1151", {name: bad[fault]})
    with stand_in():
        executor = HipExecutor(catalogue=catalogue)
        call = OnDevice(executor, make_problem([40]), ENTRY)
        message = r"\(.*, gfx1151\) refuses a code object: .*hipModuleLoadData.*failed: hipError"
        if fault == "empty":
            message = "a code object of 0 bytes is truncated"
        with pytest.raises(ExecutorError, match=rf"{message}.*{name}\.hsaco .*install the wheel again"):
            call.call()


def test_a_code_object_without_its_kernel(tmp_path: Path) -> None:
    code = Catalogue.installed().code(ENTRY.build.name, "gfx1151")
    other = next(build.name for build in builds("gfx1151") if build != ENTRY.build)
    with stand_in():
        executor = HipExecutor(catalogue=write_catalogue(tmp_path, "gfx1151", {other: code}))
        with pytest.raises(ExecutorError, match=rf"holds no kernel {other}, but: {ENTRY.build.name}"):
            executor.build_function(other)


def test_arguments_of_another_size_than_the_kernels() -> None:
    with stand_in():
        executor = HipExecutor()
        function = executor.build_function(ENTRY.build.name)
        size = function.handle[1]
        with pytest.raises(ArgumentError, match=rf"takes {size} bytes of arguments, {size + 8} are given"):
            executor.launch(function, (1, 1, 1), 32, bytes(size + 8), ())


@pytest.mark.parametrize("kept", [1, 0])
def test_no_memory_for_an_output_or_scratch(kept: int) -> None:
    with stand_in(RDNA_EMULATED_MEMORY="1M") as runtime:
        executor = HipExecutor()
        problem = make_problem([40])
        arrays = [
            put(executor, array) for array in (problem.q, problem.kv_cache, problem.block_table, problem.seq_lens)
        ]
        decode_attention(*arrays, executor=executor)
        if kept:
            runtime.fail("hipMalloc", 2)
            message = r"no memory on HIP device 0 \(.*\) for float16 \(1, 8, 64\): hipMalloc.*hipErrorOutOfMemory"
            with pytest.raises(OutOfMemoryError, match=message):
                decode_attention(*arrays, executor=executor)
            decode_attention(*arrays, executor=executor)
        else:
            with pytest.raises(MemoryError, match=r"no memory on HIP device 0 .* for float32 \(1048576,\)"):
                executor.empty((1 << 20,), "float32")


FIRST_CALLS = (
    "hipRuntimeGetVersion",
    "hipGetDeviceCount",
    "hipGetDevicePropertiesR0600",
    "hipDeviceGetName",
    "hipDeviceGetAttribute",
    "hipGetDevice",
    "hipMalloc",
    "hipMemcpy",
    "hipMemset",
    "hipModuleLoadData",
    "hipModuleGetFunction",
    "hipModuleLaunchKernel",
)


@pytest.mark.parametrize("function", FIRST_CALLS)
def test_an_error_of_any_call_is_named_and_passes(function: str) -> None:
    with stand_in() as runtime:
        runtime.fail(function, 719)
        with pytest.raises(ExecutorError, match=rf"{function} of the HIP runtime .*failed: \w+ \(719\)"):
            ready().call()
        once_more = ready()
        once_more.call()
        assert once_more.error <= once_more.problem.tolerance


def test_an_error_while_devices_are_changed() -> None:
    with stand_in(RDNA_EMULATED_DEVICES="gfx1151,gfx1151") as runtime:
        call = OnDevice(HipExecutor(1), make_problem([40]), ENTRY)
        call.call()
        runtime.fail("hipSetDevice", 719)
        with pytest.raises(ExecutorError, match=r"hipSetDevice of the HIP runtime"):
            call.call()
        call.call()
        assert call.error <= call.problem.tolerance


def test_errors_of_a_capture_query_are_named() -> None:
    with stand_in() as runtime:
        call = ready()
        call.call()
        runtime.fail("hipStreamIsCapturing", 719)
        with pytest.raises(ExecutorError, match="hipStreamIsCapturing of the HIP runtime"):
            call.call(out=None)


def test_memory_that_is_nobodys() -> None:
    class Foreign:
        __cuda_array_interface__ = {"shape": (1, 8, 64), "typestr": "<f2", "data": (4096, False), "version": 3}  # noqa: RUF012

    with stand_in():
        call = ready()
        with pytest.raises(ExecutorError, match=r"q: .*Foreign, kv_cache: .*on hip:0"):
            decode_attention(Foreign(), *call.arrays[1:])
