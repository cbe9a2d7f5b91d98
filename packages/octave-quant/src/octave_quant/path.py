"""Which of the two paths does the work of rows: the compiled core where it is built, else NumPy."""

from __future__ import annotations

import functools
import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octave_quant.formats import OctaveFormat
from octave_quant.rows import Rows

VARIABLE = "OCTAVE_QUANT_PATH"
"""The environment variable that asks for one path by name, ``core`` or ``numpy``."""


class Path(Protocol):
    """What both modules offer; `numpy_path` says what the functions do. Both give the same bytes."""

    NAME: str

    def encode(self, key: Rows, value: Rows, fmt: OctaveFormat, out: NDArray[np.uint8]) -> None: ...

    def decode(
        self,
        slots: NDArray[np.uint8],
        fmt: OctaveFormat,
        in_rotated_basis: bool,
        key: NDArray[np.float32],
        value: NDArray[np.float32],
    ) -> None: ...


def active() -> Path:
    """The path in use.

    ValueError where `VARIABLE` has another value; ImportError where it asks for a core that is not there.
    """
    return _named(os.environ.get(VARIABLE, ""))


@functools.lru_cache(maxsize=4)
def _named(name: str) -> Path:
    from octave_quant import numpy_path

    if name not in ("", "core", "numpy"):
        raise ValueError(f"{VARIABLE} is {name!r}; it must be core, numpy or unset")
    if name != "numpy":
        from octave_quant import core

        reason = core.why_absent()
        if reason is None:
            return core
        if name == "core":
            raise ImportError(f"{VARIABLE} asks for the compiled core, and {reason}; unset it to use NumPy")
    return numpy_path
