"""The kernels of launch_kernels.hip, compiled once for each target and set of options."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from device_compiler import compile_hip
from rdna_emulator import Device, Kernel

TARGETS = ("gfx1151", "gfx1100")


@functools.cache
def code_object(target: str, *options: str) -> bytes:
    source = Path(__file__).with_name("launch_kernels.hip").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        return compile_hip(source, target, Path(folder), *options)


@functools.cache
def device(target: str, threads: int) -> Device:
    return Device(target, threads=threads)


def kernel(name: str, target: str = "gfx1151", *options: str, threads: int = 2) -> Kernel:
    return device(target, threads).load(code_object(target, *options))[name]
