"""The structures and functions of csrc/abi.h."""

from __future__ import annotations

import ctypes
import functools

from ._library import core

CLASSES = 15
MODEL_PARAMETERS = 11
STALLS = 5


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
        ("span_bytes", ctypes.POINTER(ctypes.c_uint64)),
    )


@functools.cache
def functions() -> ctypes.CDLL:
    """The core, its functions declared."""
    library = core()
    library.rdna_device_create.argtypes = [ctypes.c_uint32]
    library.rdna_device_create.restype = ctypes.c_void_p
    library.rdna_device_destroy.argtypes = [ctypes.c_void_p]
    library.rdna_device_destroy.restype = None
    library.rdna_module_create.argtypes = [
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
    library.rdna_module_create.restype = ctypes.c_void_p
    library.rdna_module_destroy.argtypes = [ctypes.c_void_p]
    library.rdna_module_destroy.restype = None
    library.rdna_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(LaunchRecord)]
    library.rdna_run.restype = ctypes.c_int32
    library.rdna_class_name.argtypes = [ctypes.c_uint32]
    library.rdna_class_name.restype = ctypes.c_char_p
    return library


@functools.cache
def class_names() -> tuple[str, ...]:
    """The instruction classes, in the order of `LaunchRecord.by_class`."""
    library = functions()
    return tuple(library.rdna_class_name(k).decode() for k in range(CLASSES))
