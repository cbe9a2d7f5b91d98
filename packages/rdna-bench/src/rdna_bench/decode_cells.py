"""Decode calls of the published shapes, counted and modelled beside what was published of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdna_registry import provenance

from rdna_bench.cells_aims import Aim, aims
from rdna_bench.decode_inputs import DecodeInputs, DecodeProblem, Measured, model_executor
from rdna_bench.machine import Machine
from rdna_bench.published import PublishedCounts, published_counts, published_times

CONTEXTS = (128, 1024, 8192, 32768)

#: The roof that the published figures are relative to: a launch, and the best stream of a Radeon 8060S.
ROOF_LAUNCH_MICROSECONDS = 1.48
ROOF_GIB_PER_SECOND = 230.0


@dataclass(frozen=True)
class Cell:
    """One decode call of one sequence; ``published_microseconds`` is None where none was published."""

    head_size: int
    num_q_heads: int
    num_kv_heads: int
    max_query_len: int
    context: int
    published_microseconds: float | None = None

    @property
    def name(self) -> str:
        """Heads, head size, new tokens and context in a few characters."""
        heads = f"{self.num_q_heads}/{self.num_kv_heads}"
        return f"{heads} x {self.head_size}, {self.max_query_len} new, {self.context}"


@dataclass(frozen=True)
class CellResult:
    """What the call did, and what the issue model says of it. Modelled figures are estimates; see rdna_emulator."""

    cell: Cell
    provenance: str
    """``tuned``, ``modelled`` or ``derived``: where the knobs come from."""
    needed_bytes: int
    measured: Measured

    @property
    def roof_microseconds(self) -> float:
        """A launch, and the needed bytes at the roof."""
        return ROOF_LAUNCH_MICROSECONDS + self.needed_bytes / (ROOF_GIB_PER_SECOND * 2**30) * 1e6

    @property
    def modelled_over_published(self) -> float | None:
        """The modelled time over the published one."""
        published = self.cell.published_microseconds
        return None if published is None else self.measured.modelled_microseconds / published

    @property
    def stalled(self) -> float:
        """Stalls over all modelled cycles of all waves."""
        stalls = sum(self.measured.stall_cycles.values())
        return stalls / max(stalls + self.measured.issue_cycles, 1)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "cell": asdict(self.cell),
            "provenance": self.provenance,
            "needed_bytes": self.needed_bytes,
            **asdict(self.measured),
            "roof_microseconds": self.roof_microseconds,
            "modelled_over_published": self.modelled_over_published,
            "stalled": self.stalled,
        }


@dataclass(frozen=True)
class CountsResult:
    """A call, beside the counts of other kernels on the same inputs."""

    result: CellResult
    others: tuple[PublishedCounts, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {**self.result.to_dict(), "others": [asdict(other) for other in self.others]}


@dataclass(frozen=True)
class Judgement:
    """How the model ranks the overhead over the roof of one context's cells, against the published ranks."""

    context: int
    cells: int
    spearman: float | None
    """None where there are too few cells, or all ranks are one."""
    worst: tuple[tuple[str, int, int], ...]
    """The cells furthest apart: name, modelled rank, published rank; 1 is the least overhead."""


class CellsRun:
    """One run of ``rdna-bench decode --table``; use in order: ``__init__``, ``run``."""

    def __init__(
        self,
        *,
        target: str,
        dtype: str = "fp16",
        contexts: Sequence[int] = CONTEXTS,
        seed: int = 0,
        published_knobs: bool = False,
    ) -> None:
        self.target, self.dtype, self.seed, self.published_knobs = target, dtype, seed, published_knobs
        self.machine = Machine.here()
        self.executor = model_executor(target)
        self.refused: dict[str, list[str]] = {}
        """The calls that no build serves, by the registry's reason."""
        self.results: list[CellResult] = []
        self.counts: list[CountsResult] = []
        self._cells = [
            Cell(row.head_size, row.num_q_heads, row.num_kv_heads, row.max_query_len, context, microseconds)
            for row in published_times()
            for context, microseconds in row.microseconds.items()
            if context in contexts
        ]
        others: dict[Cell, list[PublishedCounts]] = {}
        for other in published_counts():
            heads = other.head_size, other.num_q_heads, other.num_kv_heads
            others.setdefault(Cell(*heads, other.max_query_len, other.context), []).append(other)
        self._counted = [(cell, tuple(rows)) for cell, rows in others.items()]

    @property
    def passed(self) -> bool:
        """True: a table of counts has no verdict."""
        return True

    def run(self, progress: Callable[[str, int, int], None]) -> None:
        """Make every call once; ``progress(stage, done, total)`` hears of it."""
        total = len(self._cells) + len(self._counted)
        progress("cells", 0, total)
        for done, cell in enumerate(self._cells):
            if (result := self._measure(cell)) is not None:
                self.results.append(result)
            progress("cells", done + 1, total)
        for done, (cell, others) in enumerate(self._counted, len(self._cells)):
            if (result := self._measure(cell)) is not None:
                self.counts.append(CountsResult(result, others))
            progress("cells", done + 1, total)

    def judgements(self) -> list[Judgement]:
        """How far the model can be trusted, context by context."""
        return [
            judge(context, [result for result in self.results if result.cell.context == context])
            for context in sorted({result.cell.context for result in self.results})
        ]

    def aims(self) -> list[Aim]:
        """What the kernel aims at, and how many cells reach it."""
        return aims(self.results, self.counts)

    def to_dict(self) -> dict[str, Any]:
        """The whole run, ready for JSON: times in microseconds, sizes in bytes."""
        return {
            "command": "decode --table",
            "machine": asdict(self.machine),
            "target": self.target,
            "executor": self.executor.name,
            "dtype": self.dtype,
            "seed": self.seed,
            "knobs": "published" if self.published_knobs else "selected",
            "refused": self.refused,
            "cells": [result.to_dict() for result in self.results],
            "counts": [result.to_dict() for result in self.counts],
            "aims": [asdict(aim) for aim in self.aims()],
            "judgements": [asdict(judgement) for judgement in self.judgements()],
        }

    def _measure(self, cell: Cell) -> CellResult | None:
        heads = cell.num_q_heads, cell.num_kv_heads, cell.head_size
        problem = DecodeProblem(*heads, cell.max_query_len, dtype=self.dtype)
        try:
            variant = problem.entry(self.target, modelled=not self.published_knobs)
        except ValueError as error:
            self.refused.setdefault(f"{error}.", []).append(cell.name)
            return None
        inputs = DecodeInputs(problem, cell.context, self.seed)
        kind = provenance(variant, self.target).partition(":")[0]
        return CellResult(cell, kind, problem.needed_bytes(cell.context), inputs.measure(self.executor, variant))


def judge(context: int, results: Sequence[CellResult]) -> Judgement:
    """Spearman's rank correlation of modelled and published time over the roof, and where the ranks differ most."""
    published = [(result.cell.published_microseconds or 0.0) / result.roof_microseconds for result in results]
    modelled = [result.measured.modelled_microseconds / result.roof_microseconds for result in results]
    ranks = ranks_of(modelled), ranks_of(published)
    spread = [float(np.std(rank)) for rank in ranks]
    spearman = float(np.corrcoef(*ranks)[0, 1]) if len(results) > 1 and all(spread) else None
    furthest = np.argsort(-np.abs(ranks[0] - ranks[1]), kind="stable")[:3]
    worst = tuple((results[i].cell.name, round(float(ranks[0][i])), round(float(ranks[1][i]))) for i in furthest)
    return Judgement(context, len(results), spearman, worst)


def ranks_of(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from 1, equal values sharing the mean of theirs."""
    array = np.asarray(values, np.float64)
    below = (array[:, None] > array).sum(axis=1)
    equal = (array[:, None] == array).sum(axis=1)
    ranks: NDArray[np.float64] = below + (equal + 1) / 2
    return ranks
