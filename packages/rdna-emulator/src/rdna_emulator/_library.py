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

CLASSES = 15
MODEL_PARAMETERS = 11
STALLS = 5

_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})


class Span(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("origin", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("writable", ctypes.c_uint32),
        ("counted", ctypes.c_uint32),
        ("lines", ctypes.c_uint64),
    )


class KernelRecord(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("entry", ctypes.c_uint32),
        ("user_sgprs", ctypes.c_uint32),
        ("user_sgpr_count", ctypes.c_uint32),
        ("workgroup_ids", ctypes.c_uint32),
        ("workitem_ids", ctypes.c_uint32),
        ("mode", ctypes.c_uint32),
        ("vgprs", ctypes.c_uint32),
        ("lds_bytes", ctypes.c_uint32),
        ("private_bytes", ctypes.c_uint32),
    )


class WorkgroupCycles(ctypes.Structure):
    _fields_ = (("critical", ctypes.c_uint64), ("busiest", ctypes.c_uint64))


class LaunchRecord(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.POINTER(KernelRecord)),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_lds", ctypes.c_uint32),
        ("checks", ctypes.c_uint32),
        ("collect", ctypes.c_uint32),
        ("random", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("model", ctypes.c_uint32 * (MODEL_PARAMETERS + 1)),
        ("kernarg", ctypes.c_void_p),
        ("kernarg_bytes", ctypes.c_uint64),
        ("spans", ctypes.POINTER(Span)),
        ("span_count", ctypes.c_uint64),
        ("failed", ctypes.c_int32),
        ("finding_count", ctypes.c_uint32),
        ("message", ctypes.c_char_p),
        ("findings", ctypes.POINTER(ctypes.c_char_p)),
        ("wave_instructions", ctypes.c_uint64),
        ("by_class", ctypes.c_uint64 * CLASSES),
        ("bytes_requested", ctypes.c_uint64),
        ("segments", ctypes.c_uint64 * 3),
        ("unique_lines", ctypes.c_uint64),
        ("lds_cycles", ctypes.c_uint64),
        ("lds_minimum", ctypes.c_uint64),
        ("model_workgroups", ctypes.POINTER(WorkgroupCycles)),
        ("model_workgroup_count", ctypes.c_uint64),
        ("model_issue", ctypes.c_uint64),
        ("model_stalls", ctypes.c_uint64 * STALLS),
    )


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
        raise EmulatorError(f"the core {name} is not installed; build the package (`uv sync`, or `pip install` of its folder)")
    with resources.as_file(found) as path:
        return path


@functools.cache
def library() -> ctypes.CDLL:
    """The core, loaded once."""
    core = ctypes.CDLL(str(library_path()))
    core.rdna_device_create.argtypes = [ctypes.c_uint32]
    core.rdna_device_create.restype = ctypes.c_void_p
    core.rdna_device_destroy.argtypes = [ctypes.c_void_p]
    core.rdna_device_destroy.restype = None
    core.rdna_module_create.argtypes = [
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint32),
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.c_uint64,
        ctypes.POINTER(Span),
        ctypes.c_uint64,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    core.rdna_module_create.restype = ctypes.c_void_p
    core.rdna_module_destroy.argtypes = [ctypes.c_void_p]
    core.rdna_module_destroy.restype = None
    core.rdna_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(LaunchRecord)]
    core.rdna_run.restype = ctypes.c_int32
    core.rdna_class_name.argtypes = [ctypes.c_uint32]
    core.rdna_class_name.restype = ctypes.c_char_p
    return core


@functools.cache
def class_names() -> tuple[str, ...]:
    """The instruction classes, in the order of `LaunchRecord.by_class`."""
    core = library()
    return tuple(core.rdna_class_name(k).decode() for k in range(CLASSES))
