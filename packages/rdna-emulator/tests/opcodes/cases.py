"""What a tested instruction is: its name, operand types, and the NumPy function that says what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opcodes.values import NUMPY, Bits, assert_same, unsigned

Array = NDArray[Any]
Model = Callable[..., Array]
SLOTS = (32, 34, 36)
RESULT = 38


@dataclass(frozen=True)
class Case:
    """``model`` takes one array for each source, of the source's type, and returns the result's values.

    Floats may differ from it by ``ulps`` units in the last place. A result "2f16" is two halves in one register.
    """

    name: str
    sources: tuple[str, ...]
    result: str
    model: Model
    ulps: int = 0

    def expected(self, sources: list[Bits]) -> Bits:
        """The bit patterns of the result."""
        values = [bits.view(NUMPY[kind]) for bits, kind in zip(sources, self.sources, strict=True)]
        with np.errstate(all="ignore"):
            result = self.model(*values)
            return np.asarray(result).astype(NUMPY[self.result]).view(unsigned(self.result))

    def check(self, got: Bits, sources: list[Bits]) -> None:
        """Compares the result's bit patterns with the model."""
        kind, want = self.result, self.expected(sources)
        if kind == "2f16":
            got, want, kind = got.view(np.uint16), want.view(np.uint16), "f16"
            sources = [np.repeat(bits, 2) for bits in sources]
        assert_same(got, want, kind, sources, self.name, self.ulps)


def register(slot: int, kind: str, high: bool = False) -> str:
    """The operand in assembly: v32, v[32:33], v32.l or v32.h."""
    if kind.endswith("64"):
        return f"v[{slot}:{slot + 1}]"
    if kind in ("f16", "u16", "i16"):
        return f"v{slot}.{'h' if high else 'l'}"
    return f"v{slot}"


def instruction(case: Case, suffix: str = "") -> str:
    """The instruction on the registers of the convention."""
    operands = [register(RESULT, case.result)]
    operands += [register(slot, kind) for slot, kind in zip(SLOTS, case.sources, strict=False)]
    return f"{case.name}{suffix} {', '.join(operands)}"


def table(*rows: tuple[str, str, Model] | tuple[str, str, Model, int]) -> tuple[Case, ...]:
    """Cases from rows of name, "result sources...", model and ulps."""
    cases = []
    for row in rows:
        result, *sources = row[1].split()
        cases.append(Case(row[0], tuple(sources), result, row[2], row[3] if len(row) > 3 else 0))
    return tuple(cases)
