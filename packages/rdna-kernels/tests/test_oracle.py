from __future__ import annotations

import numpy as np
from oracle import relative_error
from problem import make_problem


def test_one_key_gives_its_value() -> None:
    problem = make_problem([1], gqa=3)
    page = problem.block_table[0, 0]
    values = problem.kv_cache[page, :, 0, 64:].astype(float)
    np.testing.assert_array_equal(problem.exact()[0], np.repeat(values, 3, axis=0))


def test_equal_scores_give_the_mean_of_the_keys_seen() -> None:
    problem = make_problem([50], max_query_len=2, window=20)
    problem.q[:] = 0
    cache = problem.kv_cache[problem.block_table[0, :4]].swapaxes(0, 1).reshape(2, 64, 128)[:, :, 64:].astype(float)
    for token, last in enumerate((48, 49)):
        wanted = np.repeat(cache[:, last - 19 : last + 1].mean(axis=1), 4, axis=0)
        np.testing.assert_allclose(problem.exact()[token], wanted, rtol=1e-12)


def test_a_key_that_outscores_all_gives_its_value() -> None:
    problem = make_problem([30, 40], scale=100.0)
    page, slot = problem.block_table[1, 2], 5
    problem.kv_cache[page, :, slot, :64] = 4
    problem.q[1] = 4
    values = problem.kv_cache[page, :, slot, 64:].astype(float)
    np.testing.assert_allclose(problem.exact()[1], np.repeat(values, 4, axis=0), rtol=1e-12)


def test_the_error_sees_what_is_not_finite() -> None:
    assert relative_error(np.array([1.0, np.nan]), np.ones(2)) == np.inf
    assert relative_error(np.array([1.5, 0.0]), np.array([1.0, 1e-4])) == 0.5
