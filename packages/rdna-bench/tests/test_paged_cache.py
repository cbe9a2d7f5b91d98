"""The growing cache: what was written is found through the block table, and nothing else is finite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from rdna_bench.arrays import ALIGNMENT
from rdna_bench.paged_cache import PagedCache


def filled(steps: list[int], page_size: int = 16, dtype: str = "fp16", seed: int = 0) -> tuple[PagedCache, np.ndarray]:
    """A cache of two layers that grew by ``steps`` tokens, and its content ``[layer, token, 2, head, element]``."""
    rng = np.random.default_rng(7)
    cache = PagedCache(num_layers=2, num_kv_heads=3, head_size=4, page_size=page_size, dtype=dtype, seed=seed)
    written = np.empty((2, sum(steps), 2, 3, 4), np.float32)
    for step in steps:
        positions = cache.reserve(step)
        for layer in range(2):
            kv = rng.standard_normal((step, 2, 3, 4), np.float32)
            written[layer, positions] = kv
            cache.write(layer, positions, kv[:, 0], kv[:, 1])
    return cache, written


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("page_size", [16, 48])
def test_holds_what_was_written(dtype: str, page_size: int) -> None:
    cache, written = filled([8, 8, 3, 1, 1, 70, 1], page_size, dtype)
    keys = np.arange(len(cache))
    for layer in range(2):
        rows = cache.layer(layer)[cache.block_table[0, keys // page_size], :, keys % page_size]
        expected = written[layer].astype(cache.dtype)
        np.testing.assert_array_equal(rows[..., :4].astype(np.float32), expected[:, 0].astype(np.float32))
        np.testing.assert_array_equal(rows[..., 4:].astype(np.float32), expected[:, 1].astype(np.float32))


def test_everything_else_is_nan() -> None:
    cache, _ = filled([8, 8, 5])
    finite = np.isfinite(cache.layer(0).astype(np.float32))
    assert finite.sum() == 21 * 3 * 8
    assert cache.num_pages > cache.block_table.size


def test_the_table_has_no_entry_more_than_needed() -> None:
    cache, _ = filled([16])
    assert cache.block_table.shape == (1, 1)
    cache.reserve(1)
    assert cache.block_table.shape == (1, 2)
    assert cache.seq_lens.tolist() == [17]


def test_pages_are_distinct_shuffled_and_repeatable() -> None:
    table = filled([8] * 40)[0].block_table[0]
    assert len(set(table.tolist())) == len(table) == 20
    assert (np.diff(table) != 1).any()
    np.testing.assert_array_equal(table, filled([8] * 40)[0].block_table[0])
    assert (table != filled([8] * 40, seed=1)[0].block_table[0]).any()


def test_arrays_are_aligned_and_typed() -> None:
    cache, _ = filled([8], dtype="bf16")
    assert cache.layer(0).dtype == ml_dtypes.bfloat16
    assert cache.block_table.dtype == cache.seq_lens.dtype == np.int32
    for array in (cache.layer(0), cache.layer(1), cache.block_table, cache.seq_lens):
        assert array.ctypes.data % ALIGNMENT == 0
