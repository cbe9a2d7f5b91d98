"""How many cells of ``rdna-bench decode --table`` reach what the kernel aims at, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdna_bench.decode_cells import CellResult, CountsResult

#: Most of the published time, by tokens of context: short calls have more to gain, long ones are bound by memory.
TIME_AIMS = {128: 0.85, 8192: 0.95, 32768: 0.95}
BYTES_AIM = 1.02
BYTES_FROM_CONTEXT = 1024

_RIVAL = "hip_fork"


@dataclass(frozen=True)
class Aim:
    """One aim: how many cells it is for, how many reach it, and the names and figures of those that do not.

    ``allowed`` counts the cells in which a launch and the needed bytes at the roof's rate leave room for it.
    """

    name: str
    cells: int
    reached: int
    allowed: int
    missed: tuple[str, ...]


def aims(results: Sequence[CellResult], counts: Sequence[CountsResult]) -> list[Aim]:
    """Every aim, over the cells that it is for."""
    found = []
    for context, most in TIME_AIMS.items():
        timed = [
            (result, result.cell.published_microseconds)
            for result in results
            if result.cell.context == context and result.cell.published_microseconds is not None
        ]
        ratios = [(result.cell.name, result.measured.modelled_microseconds / published) for result, published in timed]
        aim = _at_most(f"modelled over published time at {context} tokens", ratios, most)
        allowed = sum(result.roof_microseconds <= most * published for result, published in timed)
        found.append(replace(aim, allowed=allowed))
    long = [result for result in results if result.cell.context >= BYTES_FROM_CONTEXT]
    touched = [(result.cell.name, result.measured.touched_bytes / result.needed_bytes) for result in long]
    found.append(_at_most(f"bytes touched over needed from {BYTES_FROM_CONTEXT} tokens", touched, BYTES_AIM))
    instructions, requested, partials = [], [], []
    for counted in counts:
        ours, name = counted.result.measured, counted.result.cell.name
        requested.append((name, ours.requested_bytes / counted.result.needed_bytes))
        for other in counted.others:
            instructions.append((f"{name} ({other.kernel})", ours.wave_instructions / (1e3 * other.kilo_instructions)))
            if other.kernel.startswith(_RIVAL):
                partials.append((f"{name} ({other.kernel})", ours.partial_bytes / 1e3 - other.partials_kb))
    found.append(_at_most("wave-instructions over those of other kernels", instructions, 1.0))
    besides = "bytes requested over needed, scratch left out, of the cells with others' counts"
    found.append(_at_most(besides, requested, BYTES_AIM))
    found.append(_at_most("KB of partials above the published HIP kernel's", partials, 0.0))
    return found


def _at_most(name: str, values: Sequence[tuple[str, float]], most: float) -> Aim:
    missed = sorted(((cell, value) for cell, value in values if value > most), key=lambda pair: -pair[1])
    texts = tuple(f"{cell}: {value:.3f}" for cell, value in missed)
    return Aim(f"{name}: at most {most:g}", len(values), len(values) - len(missed), len(values), texts)
