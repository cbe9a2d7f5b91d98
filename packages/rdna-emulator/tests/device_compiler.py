"""Compiles device code in tests, with the clang and lld of ziglang."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

PRELUDE = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define KERNEL extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(64, 64))) void
"""


def ziglang() -> Path:
    return Path(str(files("ziglang")))


def compile_hip(source: str, target: str, folder: Path, *options: str) -> bytes:
    """The code object of HIP ``source`` (after ``PRELUDE``) for ``target``; ``folder`` takes the files in between."""
    zig = ziglang()
    hip, relocatable, linked = folder / "source.hip", folder / "source.o", folder / "source.hsaco"
    hip.write_text(PRELUDE + source, encoding="utf-8")
    device_only = ["-x", "hip", f"--offload-arch={target}", "--cuda-device-only", "-nogpulib", "-nogpuinc"]
    headers = ["-nostdlibinc", "-resource-dir", str(zig / "lib")]
    language = ["-fuse-cuid=none", "-std=c++20", "-Wno-everything", *(options or ("-O3",))]
    emit = ["-c", "-emit-llvm", "-Xclang", "-emit-obj", "-o", str(relocatable), str(hip)]
    _run([str(zig / "zig"), "clang", *device_only, *headers, *language, *emit])
    _run(
        [
            str(zig / "zig"),
            "ld.lld",
            "-shared",
            "--no-undefined",
            "--build-id=none",
            str(relocatable),
            "-o",
            str(linked),
        ]
    )
    return linked.read_bytes()


def assemble(words: list[int], target: str, folder: Path) -> Path:
    """An object file whose text section holds ``words``."""
    source, relocatable = folder / "words.s", folder / "words.o"
    source.write_text("".join(f".long {word:#010x}\n" for word in words), encoding="utf-8")
    arguments = [
        "-target",
        "amdgcn-amd-amdhsa",
        f"-mcpu={target}",
        "-nogpulib",
        "-c",
        str(source),
        "-o",
        str(relocatable),
    ]
    _run([str(ziglang() / "zig"), "clang", *arguments])
    return relocatable


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
