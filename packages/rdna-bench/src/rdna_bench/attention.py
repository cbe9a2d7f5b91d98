"""Attention through our kernels, and any attention checked against float64 NumPy."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdna_kernels import EmulatedExecutor, LaunchRecord, decode_attention

from rdna_bench.reference import TOLERANCE, reference_attention, relative_error
from rdna_bench.traffic import Tally, needed_bytes
from rdna_bench.transformer import Attention


class KernelAttention:
    """``rdna_kernels.decode_attention`` on one executor; ``tally`` adds up what its launches did."""

    def __init__(self, executor: EmulatedExecutor, window: int = 0) -> None:
        self.executor = executor
        self.window = window
        self.tally = Tally()

    def __call__(
        self,
        q: NDArray[Any],
        kv_cache: NDArray[Any],
        block_table: NDArray[np.int32],
        seq_lens: NDArray[np.int32],
        max_query_len: int,
    ) -> NDArray[Any]:
        records: list[LaunchRecord] = []
        start = time.perf_counter()
        out: NDArray[Any] = decode_attention(
            q,
            kv_cache,
            block_table,
            seq_lens,
            max_query_len=max_query_len,
            window=self.window,
            executor=self.executor,
            report=records,
        )
        seconds = time.perf_counter() - start
        self.tally.add(records, needed_bytes(q, kv_cache, seq_lens, max_query_len, self.window), seconds)
        return out


@dataclass
class Comparison:
    """The outputs of one attention against float64 NumPy."""

    dtype: str
    calls: int = 0
    calls_over_tolerance: int = 0
    worst_error: float = 0.0
    worst_call: str = ""
    seconds: float = field(default=0.0, repr=False)

    @property
    def tolerance(self) -> float:
        """The largest ``|got - ref| / max(|ref|, 1e-3)`` that passes."""
        return TOLERANCE[self.dtype]

    @property
    def passed(self) -> bool:
        """Whether there were calls and every one stayed within the tolerance."""
        return self.calls > 0 and self.calls_over_tolerance == 0

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON; an infinite error (a NaN in the output) is the string "inf"."""
        return {
            "calls": self.calls,
            "calls_over_tolerance": self.calls_over_tolerance,
            "worst_relative_error": self.worst_error if np.isfinite(self.worst_error) else "inf",
            "worst_call": self.worst_call,
            "tolerance": self.tolerance,
            "passed": self.passed,
        }


class VerifiedAttention:
    """Runs ``attention`` and compares each of its outputs with ``reference_attention`` on the same inputs."""

    def __init__(self, attention: Attention, dtype: str, window: int = 0) -> None:
        self._attention = attention
        self._window = window
        self.comparison = Comparison(dtype)

    def __call__(
        self,
        q: NDArray[Any],
        kv_cache: NDArray[Any],
        block_table: NDArray[np.int32],
        seq_lens: NDArray[np.int32],
        max_query_len: int,
    ) -> NDArray[Any]:
        out = self._attention(q, kv_cache, block_table, seq_lens, max_query_len)
        start = time.perf_counter()
        reference = reference_attention(q, kv_cache, block_table, seq_lens, max_query_len, window=self._window)
        error = relative_error(out, reference)
        comparison = self.comparison
        if error > comparison.worst_error:
            comparison.worst_error = error
            lengths = ", ".join(str(length) for length in sorted(set(seq_lens.tolist())))
            comparison.worst_call = f"call {comparison.calls}: seq_lens {lengths}, max_query_len {max_query_len}"
        comparison.calls += 1
        comparison.calls_over_tolerance += error > comparison.tolerance
        comparison.seconds += time.perf_counter() - start
        return out


class AttentionRun:
    """What runs of attention have in common: launches of ``_kernels``, compared in ``_verified`` or not."""

    _kernels: KernelAttention
    _verified: VerifiedAttention | None

    @property
    def tally(self) -> Tally:
        """What the launches so far did."""
        return self._kernels.tally

    @property
    def comparison(self) -> Comparison | None:
        """The attention outputs against float64 NumPy, or None without ``verify``."""
        return self._verified.comparison if self._verified else None
