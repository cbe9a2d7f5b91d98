"""What of the kernels works on this machine: what is installed, its devices, what serves a shape, and a trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rdna_kernels import ArgumentError, Catalogue, HipExecutor, KernelsError
from rdna_kernels.catalogue import build_command
from rdna_kernels.executors.hip_library import HipLibrary
from rdna_registry import DEFAULT_TARGET, TARGETS, Layout, explain, select

from rdna_bench.machine import Machine
from rdna_bench.self_test import SelfTest, self_test
from rdna_bench.synthetic import DecodeShape

PACKAGES = ("rdna-registry", "octave-quant", "rdna-emulator", "rdna-kernels", "rdna-vllm", "rdna-bench")
VARIABLES = (
    "HSA_OVERRIDE_GFX_VERSION",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "RDNA_HIP_LIBRARY",
    "ROCM_PATH",
)
_MOST_DEVICES = 64
_TORCH_SECONDS = 120
_ASK_TORCH = """
import json, torch
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"version": torch.__version__, "hip": torch.version.hip, "devices": names}))
"""


@dataclass
class Diagnosis:
    """What was found; texts are for people, and ``devices`` and ``refused`` are those of the HIP runtime."""

    machine: Machine
    packages: dict[str, str]
    environment: dict[str, str]
    torch: str
    rocm: str
    compiler: str
    builds: dict[str, int]
    shape: str
    devices: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    self_test: list[SelfTest] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether kernels are installed and at least one executor's trial ran, each with the right result."""
        return bool(self.builds) and bool(self.self_test) and all(test.passed for test in self.self_test)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"command": "doctor", **asdict(self), "passed": self.passed}


def diagnose(shape: DecodeShape, progress: Callable[[str], None]) -> Diagnosis:
    """Look at this machine; ``progress`` is told each step. What is missing or broken is reported, not raised."""
    progress("looking at the kernels")
    catalogue = Catalogue.installed()
    try:
        compiler, builds = catalogue.compiler, dict(Counter(record.target for record in catalogue.records))
    except KernelsError as error:
        compiler, builds = str(error), {}
    progress("asking torch, in a process of its own")
    torch = torch_text()
    diagnosis = Diagnosis(
        machine=Machine.here(),
        packages={name: _version(name) for name in PACKAGES},
        environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
        torch=torch,
        rocm=rocm_text(Path(os.environ.get("ROCM_PATH", "/opt/rocm"))),
        compiler=compiler,
        builds=builds,
        shape=shape_text(shape, catalogue),
    )
    progress("looking for HIP devices")
    executors, diagnosis.refused = hip_executors()
    for number, executor in enumerate(executors):
        properties = executor.properties
        diagnosis.devices.append(
            f"{number}: {properties.name}, {properties.target}, {properties.multiprocessors} multiprocessors, "
            f"{properties.lds_bytes} bytes of LDS, {properties.runtime} ({executor.library.path})"
        )
    if builds:
        emulated = [target.name for target in TARGETS if target.name in builds]
        diagnosis.self_test = self_test(executors, emulated, progress)
    return diagnosis


def hip_executors(library: HipLibrary | None = None) -> tuple[list[HipExecutor], list[str]]:
    """An executor for each HIP device that is served, and what stands against the others or the runtime."""
    found: list[HipExecutor] = []
    refused: list[str] = []
    for number in range(_MOST_DEVICES):
        executor, said = _hip_executor(number, library)
        if executor is not None:
            found.append(executor)
        elif not said or said[0] in refused:  # no more devices, or what is said is not about one device
            break
        refused += [text for text in said if text not in refused]
    return found, refused


def _hip_executor(number: int, library: HipLibrary | None) -> tuple[HipExecutor | None, list[str]]:
    """The executor of a device and its warnings, or None and why; None and nothing where no device has the number."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            executor = HipExecutor(number, library=library)
        except ArgumentError:
            return None, []
        except KernelsError as error:
            return None, [str(error)]
    return executor, [str(warning.message) for warning in warned]


def torch_text() -> str:
    """The torch that is installed, the ROCm that it is built for, and the devices that it shows."""
    if _version("torch") == "not installed":
        return "not installed"
    start = time.perf_counter()
    try:
        told = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=_TORCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{_version('torch')}, which did not answer within {_TORCH_SECONDS} s"
    if told.returncode:
        return f"{_version('torch')}, which fails: {(told.stderr.strip().splitlines() or ['no message'])[-1]}"
    torch = json.loads(told.stdout.splitlines()[-1])
    build = f"for ROCm {torch['hip']}" if torch["hip"] else "not a ROCm build"
    devices = ", ".join(torch["devices"]) or "none"
    return f"{torch['version']}, {build}; devices: {devices} (asked in {time.perf_counter() - start:.1f} s)"


def rocm_text(folder: Path) -> str:
    """The ROCm in a folder."""
    if not folder.is_dir():
        return f"none in {folder}"
    try:
        return f"{(folder / '.info' / 'version').read_text(encoding='utf-8').strip()} in {folder}"
    except OSError:
        return f"in {folder}, of unknown version"


def shape_text(shape: DecodeShape, catalogue: Catalogue) -> str:
    """What serves a shape on the default target and why, and the targets that what serves it there is built for."""
    arguments = (
        *(shape.num_q_heads, shape.num_kv_heads, shape.head_size, shape.max_query_len, shape.page_size),
        *(Layout.HND, shape.window, shape.dtype, shape.num_seqs > 1),
    )
    sentence = explain(*arguments)
    try:
        build = select(*arguments).build.name
        chosen = {target: select(*arguments, target=target).build.name for target in catalogue.targets}
        targets = [target for target, name in chosen.items() if _is_built(catalogue, name, target)]
    except (ValueError, KernelsError):
        return sentence
    if not targets:
        return f"{sentence} Built for no target: {build_command(build, DEFAULT_TARGET)}"
    return f"{sentence} Built for: {', '.join(targets)}."


def _is_built(catalogue: Catalogue, name: str, target: str) -> bool:
    return any((record.name, record.target) == (name, target) for record in catalogue.records)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
