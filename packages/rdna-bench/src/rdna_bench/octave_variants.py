"""Experimental variants of the octave formats, at the bytes of the format that they vary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from octave_quant import rotate, unrotate
from octave_quant.codebook import LEVELS, MIDPOINTS, MULTIPLIERS

from rdna_bench.calibration import Float64, LayerMoments
from rdna_bench.weights import Float32

# Stretches of a group that the search tries; 1 is what the format does.
_STRETCHES = np.linspace(0.76, 1.24, 13, dtype=np.float32)
# A covariance from few tokens is taken towards a multiple of the identity by this share of its mean variance.
_SHRINKAGE = 0.02

#: What may follow the name of an octave format, and what it does.
CHANGES = {
    "mean": "subtract the calibration text's mean of each channel of K and V",
    "centred": "the same for the vectors that it makes shorter; the sign of the scale, always plus until then, tells",
    "firstN": "as centred, with the means of the sequence's own tokens 1 to N - 1",
    "balanced": "as centred, and K times a matrix of each head, q times its inverse, that halves the difference "
    "between the directions in which K varies and those that q reads",
    "weighted": "as centred, and each channel of K and V times a weight (q and the output are divided by it): the "
    "eighth root of the power with which it is read over its variance",
    "search": "the encoder tries 13 stretches of a group and keeps the codes with the least error",
    "least_squares": "the scale with the least error in place of the one that keeps scores unbiased",
    "exact_first": "token 0 is kept in float32 (no format of the same bytes: it shows what that token costs)",
}
#: Those that take moments from the calibration text.
CALIBRATED = frozenset({"mean", "centred", "weighted", "balanced"})
_FIRST = re.compile(r"first([1-9]\d*)")


def check_changes(changes: Sequence[str]) -> None:
    """ValueError where one is not in `CHANGES`, or two exclude each other."""
    for change in changes:
        match = _FIRST.fullmatch(change)
        if (change not in CHANGES and match is None) or change == "firstN":
            raise ValueError(f"unknown change {change!r} of an octave format; known: {', '.join(CHANGES)}")
        if match and int(match[1]) < 2:
            raise ValueError(f"{change}: token 0 is left out of the mean, so N must be 2 or more")
    for group in (("mean", "centred", "balanced", "weighted", "first"), ("search", "least_squares")):
        rivals = [change for change in changes if change.startswith(group)]
        if len(rivals) > 1:
            raise ValueError(f"{' and '.join(rivals)} exclude each other: name one")


def octave_values(
    x: Float32, bits: int, block: int, group: int, *, search: bool = False, least_squares: bool = False
) -> Float32:
    """``x`` ``[..., n]`` as it is read back from codes of ``bits`` bits.

    Each ``block`` of n is rotated alone, each ``group`` has a scale of its own. Without the options these are the
    values that octave_quant stores.
    """
    levels, midpoints = LEVELS[bits], MIDPOINTS[bits]
    rotated = rotate(x, block)
    groups = rotated.reshape(-1, group)
    squares = np.sum(groups * groups, axis=1, keepdims=True)
    unit = groups / np.maximum(np.sqrt(squares / group), 1e-12) * MULTIPLIERS[bits]

    def nearest(stretch: np.float32) -> Float32:
        chosen: Float32 = levels[np.searchsorted(midpoints, unit * stretch)]
        return chosen

    if search:
        best = np.full_like(squares, -1)
        chosen = np.zeros_like(groups)
        for stretch in _STRETCHES:
            tried = nearest(stretch)
            # The error that the best scale leaves is |y|^2 less this.
            kept = np.sum(groups * tried, axis=1, keepdims=True) ** 2 / np.sum(tried * tried, axis=1, keepdims=True)
            np.copyto(chosen, tried, where=kept > best)
            np.maximum(best, kept, out=best)
    else:
        chosen = nearest(np.float32(1))
    dot = np.sum(groups * chosen, axis=1, keepdims=True)
    if least_squares:
        scale: Float32 = dot / np.sum(chosen * chosen, axis=1, keepdims=True)
    else:
        scale = np.divide(squares, dot, out=np.zeros_like(dot), where=dot > 0)
    stored = (64 * scale).astype(np.float16).astype(np.float32) / 64
    values: Float32 = unrotate((chosen * stored).reshape(rotated.shape), block)
    return values


@dataclass(frozen=True)
class _Encoding:
    """How one of K and V of a layer is stored; ``mean`` is ``[tokens or 1, num_kv_heads, head_size]``."""

    bits: int
    block: int
    group: int
    mean: Float32 | None
    flagged: bool
    matrices: tuple[Float32, Float32] | None  # [num_kv_heads, head_size, head_size], and their inverses
    search: bool
    least_squares: bool

    def read_back(self, x: Float32) -> Float32:
        if self.mean is None:
            return self._coded(x)
        mean = self.mean
        if self.flagged:
            shorter = np.square(x - mean).sum(axis=-1, keepdims=True) < np.square(x).sum(axis=-1, keepdims=True)
            mean = np.where(shorter, mean, np.float32(0))
        return self._coded(x - mean) + mean

    def _coded(self, x: Float32) -> Float32:
        if self.matrices is not None:
            x = _multiplied(x, self.matrices[0])
        coded = octave_values(
            x, self.bits, self.block, self.group, search=self.search, least_squares=self.least_squares
        )
        return coded if self.matrices is None else _multiplied(coded, self.matrices[1])


class OctaveVariant:
    """An octave format with `CHANGES`; it reads back values, and packs no bytes."""

    def __init__(
        self,
        name: str,
        *,
        k_bits: int,
        v_bits: int,
        k_block: int,
        slot_bytes: int,
        changes: Sequence[str],
        moments: Callable[[], Sequence[LayerMoments]],
    ) -> None:
        """``moments`` of the calibration text are asked for when the first layer is stored that needs them."""
        check_changes(changes)
        self.name = name
        self.slot_bytes = slot_bytes
        self._k_bits, self._v_bits, self._k_block = k_bits, v_bits, k_block
        self._changes = frozenset(changes)
        self._first = next((int(match[1]) for c in changes if (match := _FIRST.fullmatch(c))), None)
        self._calibrated = bool(self._changes & CALIBRATED)
        self._moments = moments

    def store(self, layer: int, k: Float32, v: Float32) -> tuple[Float32, Float32]:
        """As `cache_formats.CacheFormat.store`."""
        k_mean = v_mean = None
        k_matrices = v_matrices = None
        if self._first is not None:
            k_mean, v_mean = (x[1 : self._first].mean(axis=0, keepdims=True) for x in (k, v))
        elif self._calibrated:
            moments = self._moments()[layer]
            k_mean, v_mean = (mean.astype(np.float32)[None] for mean in (moments.k_mean, moments.v_mean))
            if "balanced" in self._changes:
                k_matrices = _balancing(moments.k_covariance, moments.q_moment)
            elif "weighted" in self._changes:
                k_matrices = _weighting(moments.k_covariance, moments.q_moment)
                v_matrices = _weighting(moments.v_covariance, moments.output_moment)
        head_size = v.shape[-1]
        v_block = head_size if head_size & (head_size - 1) == 0 else 64
        k_read = self._encoding(self._k_bits, self._k_block, self._k_block, k_mean, k_matrices).read_back(k)
        v_read = self._encoding(self._v_bits, v_block, head_size, v_mean, v_matrices).read_back(v)
        if "exact_first" in self._changes:
            k_read[0], v_read[0] = k[0], v[0]
        return k_read, v_read

    def _encoding(
        self, bits: int, block: int, group: int, mean: Float32 | None, matrices: tuple[Float32, Float32] | None
    ) -> _Encoding:
        return _Encoding(
            bits=bits,
            block=block,
            group=group,
            mean=mean,
            flagged="mean" not in self._changes,
            matrices=matrices,
            search="search" in self._changes,
            least_squares="least_squares" in self._changes,
        )


def _multiplied(x: Float32, matrices: Float32) -> Float32:
    """``x`` ``[tokens, heads, n]`` times each head's symmetric matrix ``[heads, n, n]``."""
    return np.ascontiguousarray((x.transpose(1, 0, 2) @ matrices).transpose(1, 0, 2))


def _balancing(covariance: Float64, moment: Float64) -> tuple[Float32, Float32]:
    """The matrices that K is multiplied by, and their inverses.

    With C the covariance of K and Q the second moment of q, the error of a score is least for the square root M of
    the geometric mean ``P = C^-1/2 (C^1/2 Q C^1/2)^1/2 C^-1/2`` of C^-1 and Q, when all scores count alike. They do
    not, and half the way, ``M^1/2``, does better.
    """
    c, q = _shrunk(covariance), _shrunk(moment)
    root, inverse_root = _power(c, 0.5), _power(c, -0.5)
    mean = inverse_root @ _power(root @ q @ root, 0.5) @ inverse_root
    return _power(mean, 0.25).astype(np.float32), _power(mean, -0.25).astype(np.float32)


def _weighting(covariance: Float64, moment: Float64) -> tuple[Float32, Float32]:
    """`_balancing` with the off-diagonal elements left out: diagonal matrices."""
    diagonals = (np.diagonal(matrix, axis1=-2, axis2=-1) for matrix in (covariance, moment))
    c, q = (d + _SHRINKAGE * d.mean(axis=-1, keepdims=True) for d in diagonals)
    weights = (q / c) ** 0.125
    identity = np.eye(weights.shape[-1])
    return (identity * weights[:, None]).astype(np.float32), (identity / weights[:, None]).astype(np.float32)


def _shrunk(matrix: Float64) -> Float64:
    variance: NDArray[np.float64] = np.trace(matrix, axis1=-2, axis2=-1)[:, None, None] / matrix.shape[-1]
    return matrix + _SHRINKAGE * variance * np.eye(matrix.shape[-1])


def _power(matrix: Float64, exponent: float) -> Float64:
    """A power of each symmetric positive matrix ``[heads, n, n]``."""
    values, vectors = np.linalg.eigh(matrix)
    power: Float64 = (vectors * values[:, None] ** exponent) @ vectors.transpose(0, 2, 1)
    return power
