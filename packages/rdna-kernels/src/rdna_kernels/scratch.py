"""Scratch memory: the partial results of split sequences and the counters of their arrivals, pooled per device.

Counters are zeroed when they are made, and every launch leaves them zero; so the pool never clears them. A launch that
fails may leave them anything: its scratch does not come back to the pool.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rdna_kernels.executors.interface import Executor


class ScratchNeed(NamedTuple):
    """What one launch needs: partial rows, their width (head_size, fp32 each) and int32 counters."""

    rows: int
    head_size: int
    counters: int


@dataclass(frozen=True)
class Scratch:
    """Of one launch: partial_acc fp32 [rows, head_size], partial_max and partial_sum fp32 [rows], counters int32."""

    partial_acc: Any
    partial_max: Any
    partial_sum: Any
    counters: Any


class ScratchPool:
    """Lends scratch to launches, each to one at a time; a stream's scratch goes to launches of that stream only."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._free: dict[Any, list[_Blocks]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, need: ScratchNeed, stream: Any = None) -> Iterator[Scratch]:
        """Scratch of exactly the size needed, for as long as the context lasts; kept for others unless it raises."""
        with self._lock:
            free = self._free.setdefault(stream, [])
            blocks = free.pop() if free else None
        if blocks is None or not blocks.hold(need):
            blocks = _Blocks.of(self._executor, need, blocks)
        yield blocks.cut(need)
        with self._lock:
            free.append(blocks)


class _Blocks(NamedTuple):
    acc: Any
    row_max: Any
    row_sum: Any
    counters: Any
    acc_size: int
    rows: int
    counter_count: int

    @classmethod
    def of(cls, executor: Executor, need: ScratchNeed, old: _Blocks | None) -> _Blocks:
        rows, head_size, counters = need
        acc_size = rows * head_size
        if old is not None:
            rows, counters = max(rows, old.rows), max(counters, old.counter_count)
            acc_size = max(acc_size, old.acc_size)
        return cls(
            executor.empty((acc_size,), "float32"),
            executor.empty((rows,), "float32"),
            executor.empty((rows,), "float32"),
            executor.zeros((counters,), "int32"),
            acc_size,
            rows,
            counters,
        )

    def hold(self, need: ScratchNeed) -> bool:
        return (
            self.acc_size >= need.rows * need.head_size
            and self.rows >= need.rows
            and self.counter_count >= need.counters
        )

    def cut(self, need: ScratchNeed) -> Scratch:
        return Scratch(
            self.acc[: need.rows * need.head_size].reshape(need.rows, need.head_size),
            self.row_max[: need.rows],
            self.row_sum[: need.rows],
            self.counters[: need.counters],
        )
