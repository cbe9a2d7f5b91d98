"""Runs AMDGPU code objects for RDNA 3 on the CPU, checks and counts what they do."""

from __future__ import annotations

from ._code_object import Argument, Resources
from ._device import TARGETS, Device, Kernel, Module
from ._disassembly import Instruction, disassemble
from ._errors import (
    CheckError,
    CodeObjectError,
    EmulatorError,
    InterruptedLaunchError,
    LaunchError,
    MemoryFault,
    SpinError,
    UnknownInstructionError,
    UnsupportedError,
)
from ._hip import hip_include, hip_library
from ._options import CHECKS
from ._report import Report

__all__ = [
    "CHECKS",
    "TARGETS",
    "Argument",
    "CheckError",
    "CodeObjectError",
    "Device",
    "EmulatorError",
    "Instruction",
    "InterruptedLaunchError",
    "Kernel",
    "LaunchError",
    "MemoryFault",
    "Module",
    "Report",
    "Resources",
    "SpinError",
    "UnknownInstructionError",
    "UnsupportedError",
    "disassemble",
    "hip_include",
    "hip_library",
]
