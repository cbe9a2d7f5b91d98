"""Scores of predictions against their definitions in float64, and intervals of the bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from rdna_bench.token_scores import BLOCK_TOKENS, BlockBootstrap, ReferenceRows, TokenScores


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


@pytest.mark.parametrize(("size", "tolerance"), [(1e-3, 1e-9), (0.1, 1e-6), (2.0, 1e-4)])
def test_scores_are_those_of_float64(size: float, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    reference = rng.normal(20, 4, (50, 3000)).astype(np.float32)
    logits = (reference + rng.normal(7, size, reference.shape)).astype(np.float32)
    targets = rng.integers(0, 3000, 50)
    rows = ReferenceRows(reference, targets)
    scores = rows.score(logits)
    true, other = log_softmax(reference), log_softmax(logits)
    np.testing.assert_allclose(rows.nll, -true[np.arange(50), targets], atol=5e-6)
    np.testing.assert_allclose(scores.nll, -other[np.arange(50), targets], atol=1e-5)
    np.testing.assert_allclose(
        scores.divergence, (np.exp(true) * (true - other)).sum(axis=1), rtol=1e-3, atol=tolerance
    )
    np.testing.assert_array_equal(scores.agrees, true.argmax(axis=1) == other.argmax(axis=1))


def test_the_reference_scores_nothing_against_itself() -> None:
    logits = np.random.default_rng(1).normal(0, 3, (9, 400)).astype(np.float32)
    rows = ReferenceRows(logits, np.arange(9))
    scores = rows.score(logits)
    assert scores.agrees.all()
    np.testing.assert_allclose(scores.divergence, 0, atol=1e-12)
    np.testing.assert_allclose(scores.nll, rows.nll, atol=2e-6)


def test_parts_are_joined_in_order() -> None:
    parts = [TokenScores(np.full(n, n, np.float64), np.zeros(n), np.ones(n, np.bool_)) for n in (2, 3)]
    joined = TokenScores.joined(parts)
    assert joined.nll.tolist() == [2, 2, 3, 3, 3]
    assert len(joined.divergence) == len(joined.agrees) == 5


def test_intervals_cover_the_mean_of_dependent_values() -> None:
    # Neighbours share a term; an interval from single tokens would be far too narrow.
    rng = np.random.default_rng(2)
    covered = 0
    for seed in range(60):
        values = np.repeat(rng.normal(0, 1, 40), BLOCK_TOKENS) + rng.normal(0, 1, 40 * BLOCK_TOKENS)
        interval = BlockBootstrap(len(values), seed).mean(values)
        assert interval.low < interval.value < interval.high
        assert interval.high - interval.low > 0.3
        covered += interval.low <= 0 <= interval.high
    assert covered >= 48


def test_draws_are_seeded_and_shared() -> None:
    values = np.random.default_rng(3).normal(size=1000)
    bootstrap = BlockBootstrap(1000, 5)
    np.testing.assert_array_equal(bootstrap.means(values), BlockBootstrap(1000, 5).means(values))
    assert (bootstrap.means(values) != BlockBootstrap(1000, 6).means(values)).any()
    np.testing.assert_allclose(bootstrap.means(3 * values), 3 * bootstrap.means(values))
    np.testing.assert_allclose(bootstrap.means(np.ones(1000)), 1)
