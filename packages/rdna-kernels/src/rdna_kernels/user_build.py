"""Builds code objects on the user's machine, from the sources and with the flags that the wheel carries."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rdna_registry import Build, as_buildable

from rdna_kernels.decode_arguments import DECODE_ARGUMENTS, FEATURES
from rdna_kernels.errors import KernelsError


class BuildError(KernelsError):
    """A build that cannot be made here, and what helps."""


def compiler() -> tuple[list[str], list[str], str]:
    """The commands of clang and of the linker, and their name: ROCm's where ROCM_PATH is set, else ziglang's."""
    rocm = os.environ.get("ROCM_PATH")
    if rocm:
        clang, linker = (Path(rocm) / "llvm" / "bin" / name for name in ("clang", "ld.lld"))
        for program in (clang, linker):
            if not program.exists():
                raise BuildError(f"ROCM_PATH is {rocm}, but there is no {program}: correct it, or unset it")
        return [str(clang)], [str(linker)], "ROCm"
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise BuildError("there is no compiler: pip install 'rdna-kernels[build]', or set ROCM_PATH to a ROCm")
    folder = Path(next(iter(spec.submodule_search_locations)))
    zig = str(folder / "zig")
    return [zig, "clang", "-nostdlibinc", "-resource-dir", str(folder / "lib")], [zig, "ld.lld"], "ziglang"


def flags(sources: Path, key: str) -> list[str]:
    """The words after "key:" in the flags that the CMake build reads too."""
    lines = (sources / "cmake" / "device_flags.txt").read_text(encoding="utf-8").splitlines()
    [found] = [line.split()[1:] for line in lines if line.startswith(f"{key}: ")]
    return found


def build(sources: Path, out: Path, builds: Iterable[Build], target: str, progress: Callable[[str], None]) -> None:
    """Compile builds for a target into `out/<target>`; each appears there whole or not at all.

    BuildError for a target that is not listed, without a compiler, where it fails, and for a build that spills.
    """
    try:
        as_buildable(target)
    except ValueError as error:
        raise BuildError(str(error)) from None
    clang, linker, name = compiler()
    try:
        manifest = runpy.run_path(str(sources / "cmake" / "write_manifest.py"))
        arguments_header = runpy.run_path(str(sources / "cmake" / "list_builds.py"))["arguments_header"]
    except ImportError as error:
        raise BuildError(f"{error}: pip install 'rdna-kernels[build]'") from error
    header = arguments_header(DECODE_ARGUMENTS, FEATURES)
    (out / target).mkdir(parents=True, exist_ok=True)
    listed = list(builds)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        work = Path(folder)
        (work / "decode_arguments.h").write_text(header, encoding="utf-8")
        (work / target).mkdir()
        for number, wanted in enumerate(listed, 1):
            progress(f"[{number}/{len(listed)}] {wanted.name} for {target}")
            definitions = [f"-D{key}={value}" for key, value in wanted.definitions.items()]
            folders = [f"-I{sources / 'csrc'}", f"-I{work}"]
            relocatable, linked = work / "build.o", work / target / f"{wanted.name}.hsaco"
            source = str(sources / "csrc" / wanted.source)
            _run([*clang, *flags(sources, "compile"), f"--offload-arch={target}", *definitions, *folders,
                  "-o", str(relocatable), source], wanted.name)  # fmt: skip
            _run([*linker, *flags(sources, "link"), str(relocatable), "-o", str(linked)], wanted.name)
            entry = _entry(manifest, wanted, target, work, name)
            described = work / target / f"{wanted.name}.json"
            described.write_text(json.dumps(entry), encoding="utf-8")
            os.replace(linked, out / target / linked.name)  # the description comes last: it makes the build known
            os.replace(described, out / target / described.name)


def _entry(manifest: dict[str, Any], build: Build, target: str, work: Path, compiler: str) -> dict[str, Any]:
    plain = {"name": build.name, "operation": build.operation, "configuration": build.configuration, "target": target}
    try:
        entry: dict[str, Any] = manifest["entry"](plain, work, compiler)
    except manifest["ObjectError"] as error:
        raise BuildError(str(error)) from error
    if spilling := manifest["spilling"]([entry]):
        raise BuildError(f"{spilling[0]}: this compiler does not fit; unset ROCM_PATH, or take a newer one")
    return entry


def _run(command: list[str], name: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{name} does not compile: {done.stderr.strip() or 'no message'}")
