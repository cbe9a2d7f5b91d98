"""The compiled core: which build of it this CPU runs, and its functions.

`RDNA_EMULATOR_CORE` forces a build: ``v3`` (AVX2), ``v4`` (AVX-512), or the path of a library.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from importlib import resources
from pathlib import Path

from ._errors import EmulatorError

_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})


def _cpu_flags() -> frozenset[str]:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def _variant() -> str:
    if platform.machine() != "x86_64":
        return "native"
    flags = _cpu_flags()
    missing = sorted(_V3 - flags)
    if missing:
        raise EmulatorError(
            f"this CPU lacks {', '.join(missing)}; the emulator needs x86-64-v3 (Intel Haswell, AMD Zen, or newer)"
        )
    return "v4" if flags >= _V4 else "v3"


def library_path() -> Path:
    """The core to load; raises EmulatorError where there is none for this CPU."""
    forced = os.environ.get("RDNA_EMULATOR_CORE", "")
    if "/" in forced:
        path = Path(forced)
        if not path.is_file():
            raise EmulatorError(f"RDNA_EMULATOR_CORE names {forced}, which is no file")
        return path
    if forced not in ("", "v3", "v4"):
        raise EmulatorError(f"RDNA_EMULATOR_CORE is {forced!r}; it may be v3, v4, or the path of a library")
    name = f"librdna_emulator_{forced or _variant()}.so"
    found = resources.files("rdna_emulator").joinpath("_core", name)
    if not found.is_file():
        raise EmulatorError(
            f"the core {name} is not installed; build the package (`uv sync`, or `pip install` of its folder)"
        )
    with resources.as_file(found) as path:
        return path


@functools.cache
def core() -> ctypes.CDLL:
    """The core, loaded once."""
    return ctypes.CDLL(str(library_path()))
