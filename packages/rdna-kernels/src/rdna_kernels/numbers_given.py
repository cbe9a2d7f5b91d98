"""Numbers as callers give them: Python's, NumPy's, or arrays of one element without dimensions."""

from __future__ import annotations

import math
import operator
import reprlib
from numbers import Real
from typing import Any

from rdna_kernels.errors import ArgumentError

_NUMBERS = ("int", "uint", "float", "bfloat")


def as_integer(name: str, value: Any) -> int:
    """`value` as an int; ArgumentError, by `name`, for what is no integer: text, True and False included."""
    if _is_number(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise ArgumentError(f"{name} is {reprlib.repr(value)}; it must be an integer")


def as_real(name: str, value: Any) -> float:
    """`value` as a float, infinite past a float's range; ArgumentError, by `name`, for text, True, False and arrays."""
    if not _is_number(value):
        raise ArgumentError(f"{name} is {reprlib.repr(value)}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_number(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, Real) and not isinstance(value, bool)
    return tuple(value.shape) == () and str(dtype).removeprefix("torch.").startswith(_NUMBERS)
