"""Lengths of a batch as NumPy arrays, and plans remembered by what a batch holds."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdna_registry.arguments import INT32_MAX, ArgumentError

Value = TypeVar("Value")


def as_lengths(argument: str, value: ArrayLike) -> NDArray[np.integer[Any]]:
    """``value`` as a one-dimensional array of integers, not copied where it is one already."""
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; a plain one is needed")
    else:
        try:
            array = np.asarray(value)
        except Exception as error:
            raise TypeError(f"{argument} cannot be read as an array on the host: {error}") from error
    if array.dtype.kind not in "iu":
        raise TypeError(f"{argument} has dtype {array.dtype}; integers are needed")
    if array.ndim != 1:
        raise ArgumentError(argument, f"an array of shape {array.shape}", "one dimension")
    return array


def check_lengths(argument: str, array: NDArray[np.integer[Any]]) -> None:
    """ArgumentError where a length is negative or past int32."""
    if array.size and int(array.min()) < 0:
        raise ArgumentError(argument, int(array.min()), "no negative length")
    if array.size and int(array.max()) > INT32_MAX:
        raise ArgumentError(argument, int(array.max()), f"lengths up to {INT32_MAX}")


def query_lengths(
    query_start_loc: NDArray[np.integer[Any]], seq_lens: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Query tokens of each sequence, and ``seq_lens`` as int64.

    ``query_start_loc`` has one element more than ``seq_lens`` and does not decrease; no length is negative or past
    int32. ArgumentError otherwise.
    """
    if not seq_lens.size:
        raise ArgumentError("seq_lens", "empty", "at least one sequence")
    if query_start_loc.size != seq_lens.size + 1:
        given = f"{query_start_loc.size} long"
        raise ArgumentError("query_start_loc", given, f"one longer than seq_lens, which has {seq_lens.size}")
    starts = query_start_loc.astype(np.int64)
    queries = starts[1:] - starts[:-1]
    lengths = seq_lens.astype(np.int64)
    # One pass over both: the sign bit of any of them, and any bit past the 31st, survive in the union.
    union = int(np.bitwise_or.reduce(queries | lengths))
    if not 0 <= union <= INT32_MAX:
        if int(queries.min()) < 0:
            sequence = int(queries.argmin())
            raise ArgumentError(
                "query_start_loc", f"decreasing after element {sequence}", "starts that do not decrease"
            )
        check_lengths("query_start_loc", queries)
        check_lengths("seq_lens", lengths)
    return queries, lengths


class PlanCache(Generic[Value]):
    """The last plan of each (variant, settings), given again while the batch holds the same numbers.

    Batches are compared by content, as callers change their arrays in place.
    """

    _MOST = 64

    def __init__(self) -> None:
        self._plans: dict[tuple[int, ...], tuple[tuple[object, ...], Value, object]] = {}

    def get(self, variant: object, settings: tuple[int, ...], content: tuple[object, ...]) -> Value | None:
        """What was put for this very variant, these settings and this content, or None."""
        found = self._plans.get((id(variant), *settings))
        return found[1] if found is not None and found[0] == content else None

    def put(self, variant: object, settings: tuple[int, ...], content: tuple[object, ...], value: Value) -> None:
        """Keep a value; the variant is kept with it, so that no other object takes its id."""
        key = (id(variant), *settings)
        if len(self._plans) >= self._MOST and key not in self._plans:
            self._plans.clear()
        self._plans[key] = content, value, variant


def content_of(one: NDArray[Any], other: NDArray[Any]) -> tuple[object, ...]:
    """What two arrays hold, to be compared with what they hold later."""
    return one.dtype, one.tobytes(), other.dtype, other.tobytes()
