"""Code objects that Triton has made, against NumPy in float64 with all checks: code of another compiler front end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_cases
from planted_faults import removals
from rdna_emulator import CheckError, Device, Kernel, MemoryFault
from triton_cases import CONFIGURATIONS, OBJECTS, TARGET, case

NAMES = tuple(CONFIGURATIONS)
STORED: dict[str, Any] = triton_cases.metadata()["objects"]
WAYS: dict[str, dict[str, Any]] = {
    "checks": {"checks": "all"},
    "random": {"checks": "all", "schedule": "random", "seed": 3},
    "plain": {},
}


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(TARGET, threads=2)


def stored_kernel(device: Device, name: str) -> Kernel:
    return device.load(OBJECTS / f"{name}.hsaco")[CONFIGURATIONS[name].kernel]


def stored_shared(name: str) -> int:
    return int(STORED[name]["shared"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_stored_object(name: str, way: str, device: Device) -> None:
    configuration = CONFIGURATIONS[name]
    report = case(name).run(stored_kernel(device, name), configuration, stored_shared(name), **WAYS[way])
    assert report.findings == ()
    assert (report.counts["wmma"] > 0) == (configuration.kernel in ("matmul", "matmul_int8", "attention"))


@pytest.mark.parametrize("name", NAMES)
def test_stored_object_is_of_the_source_that_stands_here(name: str) -> None:
    assert STORED[name]["fingerprint"] == triton_cases.fingerprint(name), (
        f"{name} has changed since it was compiled; run compile_triton.py, which needs triton"
    )


def test_a_stored_object_spills(device: Device) -> None:
    assert stored_kernel(device, "attention_spills").resources.scratch_bytes > 0


def test_every_stored_object_is_tested() -> None:
    assert sorted(STORED) == sorted(NAMES) == sorted(path.stem for path in OBJECTS.glob("*.hsaco"))


@pytest.mark.parametrize(("short", "statement"), [("y", "second = tl.load"), ("out", "tl.store")])
def test_a_fault_names_the_line_of_python(short: str, statement: str, device: Device) -> None:
    lines = triton_cases.source_of("add").splitlines()
    [at] = [k for k, line in enumerate(lines) if line.strip().startswith(statement)]
    wrong = case("add")
    wrong.values[short] = np.zeros(1024, np.float32)
    with pytest.raises(MemoryFault, match=rf"at triton_kernels\.py:{STORED['add']['first_line'] + at}\b"):
        wrong.run(stored_kernel(device, "add"), CONFIGURATIONS["add"], stored_shared("add"))


@pytest.mark.parametrize("name", ["softmax", "matmul_fp16", "attention_fp16", "matmul_int8"])
def test_a_removed_barrier_is_noticed(name: str, device: Device) -> None:
    code = (OBJECTS / f"{name}.hsaco").read_bytes()
    missed = []
    for removal in removals(code, TARGET, "s_barrier"):
        kernel = device.load(removal.code)[CONFIGURATIONS[name].kernel]
        try:
            case(name).run(kernel, CONFIGURATIONS[name], stored_shared(name), checks="all")
        except CheckError:
            continue
        missed.append(f"{removal.address:#x}")
    assert missed == []


@pytest.mark.parametrize("name", NAMES)
def test_fresh_object(name: str, device: Device, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton is in a dependency group of its own")
    from compile_triton import compile_one

    code, entry = compile_one(name)
    path = tmp_path / "fresh.hsaco"
    path.write_bytes(code)
    configuration = CONFIGURATIONS[name]
    case(name).run(device.load(path)[configuration.kernel], configuration, entry["shared"], checks="all")
