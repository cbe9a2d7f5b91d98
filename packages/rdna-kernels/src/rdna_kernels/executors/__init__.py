"""Where a kernel runs."""

from __future__ import annotations

from rdna_kernels.executors.choice import executor_for, executor_of, require_reachable
from rdna_kernels.executors.emulated import EmulatedExecutor
from rdna_kernels.executors.hip import HipExecutor
from rdna_kernels.executors.interface import DeviceProperties, Executor, Function

__all__ = [
    "DeviceProperties",
    "EmulatedExecutor",
    "Executor",
    "Function",
    "HipExecutor",
    "executor_for",
    "executor_of",
    "require_reachable",
]
