"""Attention kernels for AMD RDNA GPUs: operators, the executors that run them, and the built code objects."""

from __future__ import annotations

from rdna_kernels.catalogue import BuildRecord, Catalogue
from rdna_kernels.decode import decode_attention
from rdna_kernels.errors import (
    ArgumentError,
    ExecutorError,
    KernelsError,
    MissingBuildError,
    OutOfMemoryError,
    UnsupportedError,
)
from rdna_kernels.executors import EmulatedExecutor, Executor, HipExecutor
from rdna_kernels.record import LaunchRecord

__all__ = [
    "ArgumentError",
    "BuildRecord",
    "Catalogue",
    "EmulatedExecutor",
    "Executor",
    "ExecutorError",
    "HipExecutor",
    "KernelsError",
    "LaunchRecord",
    "MissingBuildError",
    "OutOfMemoryError",
    "UnsupportedError",
    "decode_attention",
]
