"""Checks that several functions make of what they are given."""

from __future__ import annotations

import operator
import reprlib

import numpy as np


def truth(value: object, name: str) -> bool:
    """``value``, Python's or NumPy's, as a bool; TypeError, by ``name``, for anything else."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {reprlib.repr(value)}; it must be True or False")
    return bool(value)


def integer(value: object, name: str) -> int:
    """``value`` as an int; TypeError, by ``name``, for what is no integer, True and False included."""
    # Arrays and bools have an __index__ too, and so have the bools of older versions of NumPy.
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__") or getattr(value, "shape", ()) != ():
        raise TypeError(f"{name} is {value!r}; it must be an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
