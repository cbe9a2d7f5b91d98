"""Scratch memory: the partial results of split sequences and the counters of their arrivals, pooled per device.

Counters are zeroed when they are made, and every launch leaves them zero; so the pool never clears them. A launch that
fails may leave them anything: its scratch does not come back to the pool.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
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
    """Of one launch: partial_acc fp32 [rows, head_size], partial_max and partial_sum fp32 [rows], counters int32.

    `addresses` are those of the four, by these names.
    """

    partial_acc: Any
    partial_max: Any
    partial_sum: Any
    counters: Any
    addresses: Mapping[str, int]


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
        if blocks is None:
            blocks = _Blocks(self._executor, need.rows * need.head_size, need.rows, need.counters)
        elif not blocks.hold(need):
            blocks = blocks.grown(need)
        yield blocks.cut(need)
        with self._lock:
            free.append(blocks)


class _Blocks:
    """Four arrays, and the scratches of the sizes so far that were cut from them."""

    def __init__(self, executor: Executor, acc_size: int, rows: int, counters: int) -> None:
        self._executor = executor
        self._sizes = (acc_size, rows, counters)
        self._acc = executor.empty((acc_size,), "float32")
        self._max = executor.empty((rows,), "float32")
        self._sum = executor.empty((rows,), "float32")
        self._counters = executor.zeros((counters,), "int32")
        self._cuts: dict[ScratchNeed, Scratch] = {}

    def hold(self, need: ScratchNeed) -> bool:
        acc_size, rows, counters = self._sizes
        return acc_size >= need.rows * need.head_size and rows >= need.rows and counters >= need.counters

    def grown(self, need: ScratchNeed) -> _Blocks:
        acc_size, rows, counters = self._sizes
        return _Blocks(
            self._executor,
            max(acc_size, need.rows * need.head_size),
            max(rows, need.rows),
            max(counters, need.counters),
        )

    def cut(self, need: ScratchNeed) -> Scratch:
        scratch = self._cuts.get(need)
        if scratch is None:
            address, cut = self._executor.address, self._executor.cut
            scratch = self._cuts[need] = Scratch(
                cut(self._acc, (need.rows, need.head_size)),
                cut(self._max, (need.rows,)),
                cut(self._sum, (need.rows,)),
                cut(self._counters, (need.counters,)),
                {
                    "partial_acc": address(self._acc),
                    "partial_max": address(self._max),
                    "partial_sum": address(self._sum),
                    "counters": address(self._counters),
                },
            )
        return scratch
