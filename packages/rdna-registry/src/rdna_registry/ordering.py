"""The order that planners launch work in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

INDEX_BITS = 27
"""Bits of a place; 36 bits of weight fill the rest of an int64."""


def largest_first(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stable order of fewer than 2**27 weights below 2**36, the largest first; the array is overwritten with it.

    Sorting weight and place as one number is several times faster than a stable argsort of a thousand numbers.
    """
    weights *= -(1 << INDEX_BITS)
    weights += np.arange(len(weights))
    weights.sort()
    weights &= (1 << INDEX_BITS) - 1
    return weights
