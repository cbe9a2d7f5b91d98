"""Look-ups that remember their answers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def remembered(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """``function`` with its last answers kept by the values and types of its arguments; errors are not kept."""
    kept = cast("Callable[Parameters, Answer]", functools.lru_cache(maxsize=4096, typed=True)(function))

    @functools.wraps(function)
    def look_up(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        try:
            return kept(*args, **kwargs)
        except TypeError:  # an argument that cannot be a key; or one that the function itself will name
            pass
        return function(*args, **kwargs)

    return look_up
