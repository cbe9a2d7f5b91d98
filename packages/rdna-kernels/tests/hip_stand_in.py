"""The HIP runtime that the hip executor's tests run through: rdna-emulator's stand-in, told what machine it is."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import rdna_emulator
from oracle import relative_error
from problem import Problem
from rdna_kernels import HipExecutor, decode_attention
from rdna_kernels.executors import hip_library
from rdna_kernels.executors.device_array import DeviceArray
from rdna_kernels.executors.hip import default_hip
from rdna_registry import KernelVariant

GLOBAL_CAPTURE = 0


class StandIn:
    """The stand-in's own functions, and the HIP functions that a caller of the executor uses besides it."""

    tensor_type: Any  # torch's tensors on a device, and the stream of each device: where tests use torch
    streams: dict[int, int]

    def __init__(self) -> None:
        self.path = str(rdna_emulator.hip_library())
        self.raw = ctypes.CDLL(self.path)
        self.raw.rdna_hip_calls.restype = ctypes.c_ulonglong
        self.raw.rdna_hip_calls.argtypes = (ctypes.c_char_p,)
        self.raw.rdna_hip_fail.argtypes = (ctypes.c_char_p, ctypes.c_uint, ctypes.c_int)

    def reset(self) -> None:
        """Forget everything and read the environment again."""
        self.raw.rdna_hip_reset()

    def fail(self, function: str, error: int) -> None:
        """Make the next call of a function fail."""
        self.raw.rdna_hip_fail(function.encode(), 1, error)

    def calls(self, function: str | None = None) -> int:
        """How often a function has been called; all of them without a name."""
        return int(self.raw.rdna_hip_calls(None if function is None else function.encode()))

    def call(self, function: str, *arguments: Any) -> None:
        """Call a HIP function, which must succeed."""
        code = getattr(self.raw, function)(*arguments)
        assert code == 0, f"{function} gave {code}"

    def make(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """Call a HIP function that gives a handle first."""
        handle = ctypes.c_void_p()
        self.call(function, ctypes.byref(handle), *arguments)
        return handle

    def make_graph(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        """End the capture on a stream; returns its graph."""
        graph = ctypes.c_void_p()
        self.call("hipStreamEndCapture", stream, ctypes.byref(graph))
        return graph


@contextmanager
def stand_in(**environment: str) -> Iterator[StandIn]:
    """The stand-in with this environment, as the runtime that is found by default."""
    runtime = StandIn()
    names = ("RDNA_HIP_LIBRARY", "HSA_OVERRIDE_GFX_VERSION")
    kept = {
        name: value for name, value in os.environ.items() if name not in names and not name.startswith("RDNA_EMULATED_")
    }
    given: Mapping[str, str] = {"RDNA_HIP_LIBRARY": runtime.path, **environment}
    with (
        mock.patch.dict(os.environ, {**kept, **given}, clear=True),
        mock.patch.object(hip_library, "_opened", None),
    ):
        default_hip.cache_clear()
        gc.collect()  # arrays of other tests, whose calls would meet the failures that this one plans
        runtime.reset()
        yield runtime
    default_hip.cache_clear()
    runtime.reset()


class OnDevice:
    """A problem whose arrays are in a device's memory, with an output and scratch."""

    def __init__(self, executor: HipExecutor, problem: Problem, entry: KernelVariant) -> None:
        self.executor = executor
        self.problem = problem
        self.arrays = tuple(
            put(executor, array) for array in (problem.q, problem.kv_cache, problem.block_table, problem.seq_lens)
        )
        self.out = executor.empty(problem.q.shape, problem.q.dtype)
        (rows, width), _, counters = entry.scratch_shapes()
        num_seqs = len(problem.seq_lens)
        self.scratch = (
            executor.empty((num_seqs * rows, width), "float32"),
            executor.empty((num_seqs * rows,), "float32"),
            executor.empty((num_seqs * rows,), "float32"),
            executor.zeros((num_seqs * counters,), "int32"),
        )

    def call(self, **options: Any) -> DeviceArray:
        """Decode on the executor; everything is given unless an option says otherwise."""
        problem = self.problem
        given = {"out": self.out, "scratch": self.scratch, "executor": self.executor, **options}
        out: DeviceArray = decode_attention(
            *self.arrays, max_query_len=problem.max_query_len, window=problem.window, scale=problem.scale, **given
        )
        return out

    @property
    def error(self) -> float:
        """The relative error of what stands in the output."""
        return relative_error(self.out.get(), self.problem.exact())


def put(executor: HipExecutor, values: np.ndarray[Any, Any]) -> DeviceArray:
    """A copy in the device's memory."""
    array = executor.empty(values.shape, values.dtype)
    assert isinstance(array, DeviceArray)
    return array.set(values)
