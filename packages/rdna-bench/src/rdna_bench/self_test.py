"""A short trial of every executor that this machine has: decode attention against float64 NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdna_emulator import EmulatorError
from rdna_kernels import EmulatedExecutor, HipExecutor, KernelsError, decode_attention

from rdna_bench.reference import TOLERANCE, reference_attention, relative_error
from rdna_bench.synthetic import DecodeInputs, DecodeShape, make_inputs

SHAPES = (
    DecodeShape(context=70),
    DecodeShape(context=70, max_query_len=3, dtype="bf16"),
    DecodeShape(num_q_heads=8, num_kv_heads=1, head_size=128, context=40, num_seqs=2, window=20),
)

_TO_DEVICE, _TO_HOST = 1, 2  # hipMemcpyKind


@dataclass(frozen=True)
class SelfTest:
    """One call; ``error`` is the worst relative error or what went wrong, ``seconds`` the whole call's."""

    executor: str
    target: str
    shape: str
    error: float | str
    tolerance: float
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether it ran and came within the tolerance."""
        return not isinstance(self.error, str) and self.error <= self.tolerance


def self_test(
    devices: Sequence[HipExecutor], targets: Sequence[str], progress: Callable[[str], None]
) -> list[SelfTest]:
    """Every shape on each device, and on the emulator, with all its checks, for each target."""
    tests = []
    executors: list[HipExecutor | EmulatedExecutor] = [*devices]
    executors += [EmulatedExecutor(target, checks="all") for target in targets]
    for executor in executors:
        for shape in SHAPES:
            progress(f"trying {executor.name} {executor.target}, head size {shape.head_size}")
            tests.append(_try(executor, shape))
    return tests


def _try(executor: HipExecutor | EmulatedExecutor, shape: DecodeShape) -> SelfTest:
    inputs = make_inputs(shape, seed=0)
    reference = reference_attention(
        inputs.q, inputs.kv_cache, inputs.block_table, inputs.seq_lens, shape.max_query_len, window=shape.window
    )
    start = time.perf_counter()
    error: float | str
    try:
        error = relative_error(_call(executor, inputs, shape), reference)
        error = error if np.isfinite(error) else "NaN or infinity in the output"
    except (KernelsError, EmulatorError) as failure:
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - start
    heads = f"{shape.num_q_heads}/{shape.num_kv_heads} heads of {shape.head_size}"
    text = f"{heads}, {shape.max_query_len} new, {shape.dtype}"
    return SelfTest(executor.name, executor.target, text, error, TOLERANCE[shape.dtype], seconds)


def _call(executor: HipExecutor | EmulatedExecutor, inputs: DecodeInputs, shape: DecodeShape) -> NDArray[Any]:
    arrays = (inputs.q, inputs.kv_cache, inputs.block_table, inputs.seq_lens)
    options: dict[str, Any] = {"max_query_len": shape.max_query_len, "window": shape.window, "executor": executor}
    if isinstance(executor, EmulatedExecutor):
        result: NDArray[Any] = decode_attention(*arrays, **options)
        return result
    out = np.empty_like(inputs.q)
    on_device = decode_attention(*(_to_device(executor, array) for array in arrays), **options)
    executor.library.call("hipStreamSynchronize", executor.stream())
    executor.library.call("hipMemcpy", out.ctypes.data, executor.address(on_device), out.nbytes, _TO_HOST)
    return out


def _to_device(executor: HipExecutor, array: NDArray[Any]) -> Any:
    copy = executor.empty(array.shape, array.dtype)
    executor.library.call("hipMemcpy", executor.address(copy), array.ctypes.data, array.nbytes, _TO_DEVICE)
    return copy
