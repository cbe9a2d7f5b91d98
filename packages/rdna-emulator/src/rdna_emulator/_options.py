"""The options of a launch: sizes, numbers, and names of checks and measures."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import numpy as np

from ._arguments import Dim3
from ._errors import LaunchError

Size = SupportsIndex | Sequence[SupportsIndex]
CHECKS = ("waits", "uninitialised", "bounds", "races", "collisions", "barriers", "spin")
MEASURES = ("model",)
MEASURE_MODEL = 1 << len(CHECKS)


def sizes(what: str, value: Size) -> Dim3:
    """Three dimensions from an integer or up to three."""
    if type(value) is int and 1 <= value < 1 << 31:
        return value, 1, 1
    try:
        given = [_index(size) for size in ([value] if isinstance(value, SupportsIndex) else value)]
    except TypeError:
        given = []
    if not 1 <= len(given) <= 3:
        raise LaunchError(f"{what} is {value!r}; it may be an int or up to three")
    x, y, z = given + [1] * (3 - len(given))
    if not all(1 <= size < 1 << 31 for size in (x, y, z)):
        raise LaunchError(f"{what} is {value!r}; each dimension is at least 1 and below 2^31")
    return x, y, z


def integer(what: str, value: SupportsIndex) -> int:
    """A Python or NumPy integer as an int."""
    if type(value) is int:
        return value
    try:
        return _index(value)
    except TypeError:
        raise LaunchError(f"{what} is {value!r}; it must be an integer") from None


def _index(value: SupportsIndex) -> int:
    # Truth values have an __index__ too, those of older versions of NumPy included.
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return operator.index(value)


def check_mask(checks: Iterable[str] | str) -> int:
    """A bit for each named check, in the order of CHECKS."""
    mask = 0
    for name in _names("checks", checks):
        if name == "all":
            return (1 << len(CHECKS)) - 1
        if name not in CHECKS:
            raise LaunchError(f"unknown check {name!r}; there are {', '.join(CHECKS)}, and 'all'")
        mask |= 1 << CHECKS.index(name)
    return mask


def measure_mask(measure: Iterable[str] | str) -> int:
    """MEASURE_MODEL where "model" is named."""
    mask = 0
    for name in _names("measure", measure):
        if name not in MEASURES:
            raise LaunchError(f"unknown measure {name!r}; there is {', '.join(MEASURES)}")
        mask |= MEASURE_MODEL
    return mask


def _names(what: str, value: Iterable[str] | str) -> Iterable[str]:
    if isinstance(value, str):
        return (value,) if value else ()
    if not isinstance(value, Iterable):
        raise LaunchError(f"{what} is {value!r}; it may be a name or several")
    return value
