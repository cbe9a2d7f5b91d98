"""Checks of arguments, with errors that name the argument, what was given and what is allowed."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

INT32_MAX = 2**31 - 1

MAX_HEADS = 65535
"""Most heads: they are a dimension of a launch's grid."""


class ArgumentError(ValueError):
    """An argument outside what is allowed; ``argument`` holds its name."""

    def __init__(self, argument: str, given: object, allowed: str) -> None:
        super().__init__(argument, given, allowed)
        self.argument = argument
        self.given = given
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.argument} is {self.given!r}; allowed: {self.allowed}"


def as_int(argument: str, value: SupportsIndex, low: int, high: int | None = None) -> int:
    """``value`` as an int from ``low`` to ``high``; TypeError for no integer, ArgumentError outside the range."""
    if type(value) is not int:
        if isinstance(value, bool | np.bool_):
            raise TypeError(f"{argument} is {value!r}; an integer is needed")
        try:
            value = operator.index(value)
        except TypeError:
            raise TypeError(f"{argument} is {value!r} of type {type(value).__name__}; an integer is needed") from None
    if value < low or (high is not None and value > high):
        raise ArgumentError(argument, value, f"{low} and more" if high is None else f"{low} to {high}")
    return value


def as_multiple(argument: str, value: SupportsIndex, step: int, high: int | None = None) -> int:
    """``value`` as a positive int that is a multiple of ``step``."""
    number = as_int(argument, value, 1, high)
    if number % step:
        raise ArgumentError(argument, number, f"a multiple of {step}")
    return number


def as_flag(argument: str, value: SupportsIndex) -> int:
    """``value`` as 0 or 1."""
    return as_int(argument, int(value) if isinstance(value, bool) else value, 0, 1)


def as_bool(argument: str, value: object) -> bool:
    """``value``, Python's or NumPy's, as a bool; TypeError for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{argument} is {value!r} of type {type(value).__name__}; a bool is needed")
    return bool(value)


def is_plain_number(text: str) -> bool:
    """Whether a text is a decimal number as str() writes it, of ASCII digits without leading zeros."""
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
