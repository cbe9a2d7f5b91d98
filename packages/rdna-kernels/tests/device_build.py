"""Compiles a decode build of changed sources with the device compiler, for tests that need wrong kernels."""

from __future__ import annotations

import importlib.util
import runpy
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fake_catalogue import write_catalogue
from rdna_kernels import Catalogue
from rdna_kernels.decode_arguments import DECODE_ARGUMENTS, FEATURES
from rdna_registry import Build

PACKAGE = Path(__file__).parents[1]
SOURCES = PACKAGE / "csrc"


def changed_sources(folder: Path, edits: Iterable[tuple[str, str, str]]) -> Path:
    """A copy of the device sources with edits (file, text, its replacement); each text must stand in the file once."""
    copy = folder / "csrc"
    shutil.copytree(SOURCES, copy)
    for name, before, after in edits:
        text = (copy / name).read_text()
        found = text.count(before)
        if found != 1:
            raise ValueError(f"{name} has {found} places like {before!r}; an edit needs exactly one")
        (copy / name).write_text(text.replace(before, after))
    return copy


def compile_build(build: Build, target: str, sources: Path, folder: Path) -> Catalogue:
    """A catalogue in `folder` with this build alone, compiled as CMakeLists.txt does."""
    make_header = runpy.run_path(str(PACKAGE / "cmake" / "list_builds.py"))["arguments_header"]
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    (include / "decode_arguments.h").write_text(make_header(DECODE_ARGUMENTS, FEATURES))
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None
    assert spec.submodule_search_locations
    (ziglang,) = map(Path, spec.submodule_search_locations)
    relocatable, linked = folder / f"{build.name}.o", folder / f"{build.name}.hsaco"
    compiler = [
        str(ziglang / "zig"), "clang", "-nostdlibinc", "-resource-dir", str(ziglang / "lib"), "-x", "hip",
        "--cuda-device-only", "-nogpulib", "-nogpuinc", "-fuse-cuid=none", "-std=c++20", "-O3", "-c", "-emit-llvm",
        "-Xclang", "-emit-obj", f"--offload-arch={target}",
    ]  # fmt: skip
    definitions = [f"-D{name}={value}" for name, value in build.definitions.items()]
    folders = [f"-I{sources}", f"-I{include}"]
    subprocess.run([*compiler, *definitions, *folders, "-o", str(relocatable), str(sources / build.source)], check=True)
    linker = [str(ziglang / "zig"), "ld.lld", "-shared", "--no-undefined", "--build-id=none"]
    subprocess.run([*linker, str(relocatable), "-o", str(linked)], check=True)
    return write_catalogue(folder / "built", target, {build.name: linked.read_bytes()})
