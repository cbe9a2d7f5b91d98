"""The fixed signs that K and V are multiplied by before the transform."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from octave_quant.arguments import integer

SEED = 0x5E17


@lru_cache(maxsize=16)
def _minus(n: int) -> NDArray[np.bool_]:
    draws = np.random.RandomState(SEED).randint(0, 2**32, size=n, dtype=np.uint32)
    minus = (draws & 1).astype(bool)
    minus.setflags(write=False)
    return minus


def signs(n: int) -> NDArray[np.float32]:
    """The first ``n`` signs, float32 ``[n]`` of +1 and -1: shorter heads take a prefix of longer ones.

    Sign i is minus where the lowest bit of the i-th 32-bit output of MT19937, seeded with 0x5E17, is set.
    ValueError for a negative ``n``, TypeError for what is no integer.
    """
    n = integer(n, "n")
    if n < 0:
        raise ValueError(f"n is {n}; a number of signs is 0 or more")
    return np.where(_minus(n), np.float32(-1), np.float32(1))


def sign_bits(n: int) -> NDArray[np.int32]:
    """The first ``n`` signs as words, int32 ``[n / 32]``: lowest bit first, a set bit is minus.

    ValueError where ``n`` is no multiple of 32, TypeError where it is no integer.
    """
    n = integer(n, "n")
    if n < 0 or n % 32:
        raise ValueError(f"n is {n}; a word holds 32 signs, so n must be a multiple of 32")
    return np.packbits(_minus(n), bitorder="little").view("<i4").astype(np.int32)
