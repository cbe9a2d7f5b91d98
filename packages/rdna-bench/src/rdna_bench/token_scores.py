"""What a changed cache does to the predictions of every token, and intervals for its means by block bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdna_bench.weights import Float32

Float64 = NDArray[np.float64]

#: Consecutive tokens that are drawn together: losses of neighbours depend on each other.
BLOCK_TOKENS = 64
#: Draws of a bootstrap; intervals reach from the 2.5th to the 97.5th percentile.
RESAMPLES = 2000


@dataclass(frozen=True)
class TokenScores:
    """Scores of the predictions of one cache format, one entry a predicted token, natural logarithms."""

    nll: Float64  # -log p(the token that follows)
    divergence: Float64  # KL(reference || this format)
    agrees: NDArray[np.bool_]  # whether the likeliest token is the reference's

    @classmethod
    def joined(cls, parts: Sequence[TokenScores]) -> TokenScores:
        """The parts' tokens, one part after the other."""
        return cls(
            np.concatenate([part.nll for part in parts]),
            np.concatenate([part.divergence for part in parts]),
            np.concatenate([part.agrees for part in parts]),
        )


class ReferenceRows:
    """The reference's logits ``[tokens, vocab]`` of some tokens, with what scoring others against them needs."""

    def __init__(self, logits: Float32, targets: NDArray[np.intp]) -> None:
        """``targets`` ``[tokens]`` are the tokens that follow."""
        self._logits = logits - logits.max(axis=1, keepdims=True)
        self._targets = targets
        self._log_sum = np.log(np.exp(self._logits).sum(axis=1, dtype=np.float64))
        self._probabilities = np.exp(self._logits - self._log_sum[:, None].astype(np.float32))
        self._total = self._probabilities.sum(axis=1, dtype=np.float64)

    @property
    def nll(self) -> Float64:
        """``-log p`` of the tokens that follow."""
        nll: Float64 = self._log_sum - self._logits[np.arange(len(self._targets)), self._targets]
        return nll

    def score(self, logits: Float32) -> TokenScores:
        """The scores of a format's ``logits`` ``[tokens, vocab]`` of the same tokens."""
        largest = logits.max(axis=1, keepdims=True)
        lost = self._logits - (logits - largest)
        # KL = E[lost] + log E[exp(-lost)] for every constant added to lost: near its mean, small differences do not
        # drown in rounding.
        middle = self._expected(lost)[:, None].astype(np.float32)
        lost -= middle
        divergence = self._expected(lost)
        np.expm1(np.negative(lost, out=lost), out=lost)
        log_mean = np.log1p(self._expected(lost))
        log_sum = self._log_sum - middle[:, 0] + log_mean + largest[:, 0]
        return TokenScores(
            nll=log_sum - logits[np.arange(len(self._targets)), self._targets],
            divergence=divergence + log_mean,
            agrees=self._logits.argmax(axis=1) == logits.argmax(axis=1),
        )

    def _expected(self, values: Float32) -> Float64:
        """The mean of each row of ``values`` under the reference's probabilities."""
        expected: Float64 = np.einsum("tv,tv->t", self._probabilities, values) / self._total
        return expected


@dataclass(frozen=True)
class Estimate:
    """A figure and the interval that holds 95 % of its resampled values."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """All fields, ready for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


class BlockBootstrap:
    """Draws blocks of tokens with replacement; all means of one instance are over the same draws, so they pair."""

    def __init__(self, tokens: int, seed: int) -> None:
        """For sequences of ``tokens`` scored tokens in all."""
        self._starts = np.arange(0, tokens, BLOCK_TOKENS)
        blocks = len(self._starts)
        self._draws = np.random.default_rng(seed).integers(0, blocks, (RESAMPLES, blocks))
        sizes = np.diff(np.append(self._starts, tokens))
        self._sizes = sizes[self._draws].sum(axis=1)

    def means(self, values: NDArray[np.generic]) -> Float64:
        """The mean of ``values`` ``[tokens]`` in each of the `RESAMPLES` draws."""
        sums = np.add.reduceat(values.astype(np.float64), self._starts)
        means: Float64 = sums[self._draws].sum(axis=1) / self._sizes
        return means

    def mean(self, values: NDArray[np.generic]) -> Estimate:
        """The mean of ``values`` ``[tokens]`` and its interval."""
        return estimate(float(np.mean(values.astype(np.float64))), self.means(values))


def estimate(value: float, resampled: Float64) -> Estimate:
    """``value`` with the interval of its ``resampled`` values."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value, float(low), float(high))
