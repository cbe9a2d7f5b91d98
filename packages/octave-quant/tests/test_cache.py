from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from octave_quant import OctaveFormat, dequantize, paged_attention, quantize, store

FMT = OctaveFormat(64, 64, 4)
BLOCKS, HEADS, BLOCK_SIZE = 5, 2, 4


def vectors(tokens: int, seed: int = 0) -> tuple[Any, Any]:
    k, v = np.random.default_rng(seed).standard_normal((2, tokens, HEADS, FMT.head_size)).astype(np.float16)
    return k, v


def empty_cache() -> np.ndarray:
    return np.full((BLOCKS, HEADS, BLOCK_SIZE, FMT.slot_bytes), 0xA5, np.uint8)


def views() -> dict[str, np.ndarray]:
    """Caches of one shape and several strides."""
    room = np.full((BLOCKS, BLOCK_SIZE, HEADS, FMT.slot_bytes + 16), 0xA5, np.uint8)
    return {
        "dense": empty_cache(),
        "token first": room.transpose(0, 2, 1, 3)[..., 8:-8],
        "backwards": empty_cache()[::-1, :, ::-1],
    }


@settings(max_examples=40)
@given(data=st.data(), tokens=st.integers(0, 12), dtype=st.sampled_from([np.int32, np.int64]))
@pytest.mark.parametrize("kind", list(views()))
def test_slots_go_where_the_mapping_says(kind: str, data: st.DataObject, tokens: int, dtype: Any) -> None:
    slot = st.integers(-3, BLOCKS * BLOCK_SIZE - 1)
    mapping = np.array(data.draw(st.lists(slot, min_size=tokens, max_size=tokens)), dtype)
    k, v = vectors(tokens)
    cache, want = views()[kind], empty_cache()
    store(k, v, cache, mapping, FMT)
    for token, slots in enumerate(quantize(k, v, FMT)):  # of equal slots the last one stays
        if mapping[token] >= 0:
            want[mapping[token] // BLOCK_SIZE, :, mapping[token] % BLOCK_SIZE] = slots
    assert np.array_equal(cache, want)


def test_bytes_beside_the_slots_stay() -> None:
    room = np.full((BLOCKS, HEADS, BLOCK_SIZE, FMT.slot_bytes + 16), 0xA5, np.uint8)
    store(*vectors(BLOCKS * BLOCK_SIZE), room[..., 8:-8], np.arange(BLOCKS * BLOCK_SIZE, dtype=np.int32), FMT)
    assert (room[..., :8] == 0xA5).all()
    assert (room[..., -8:] == 0xA5).all()
    assert (room[..., 8:-8] != 0xA5).any(axis=-1).all()


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ([0, 20], "slot_mapping holds 20 for token 1; the cache has slots 0 to 19"),
        ([2**31, 0], "slot_mapping holds 2147483648 for token 0; a slot number is an int32"),
        ([0], r"slot_mapping has shape \(1,\); it must be \[2\]"),
    ],
)
def test_slots_that_cannot_be(mapping: list[int], message: str) -> None:
    cache = empty_cache()
    with pytest.raises(ValueError, match=message):
        store(*vectors(2), cache, np.array(mapping), FMT)
    assert (cache == 0xA5).all()


def test_a_call_that_fails_leaves_the_cache_as_it_was() -> None:
    k, v = vectors(2)
    mapping = np.arange(2, dtype=np.int32)
    nan = k.copy()
    nan[1, 1, 3] = np.nan
    cache = empty_cache()
    frozen = cache.view()
    frozen.flags.writeable = False
    for error, arguments, message in (
        (ValueError, (nan, v, cache, mapping, FMT), "key has NaN or Inf at token 1, head 1"),
        (ValueError, (k, v, cache[..., :-1], mapping, FMT), r"it must be \[blocks, H, block_size, 72\]"),
        (ValueError, (k, v, np.repeat(cache, 2, axis=-1)[..., ::2], mapping, FMT), "last stride of 2; it must be 1"),
        (ValueError, (k[:, :1], v[:, :1], cache, mapping, FMT), "cache has 2 KV heads and key has 1"),
        (ValueError, (k, v, frozen, mapping, FMT), "cache is read-only"),
        (ValueError, (k, v, np.broadcast_to(cache[:1], cache.shape), mapping, FMT), "cache is read-only"),
        (TypeError, (k, v, cache.view(np.int8), mapping, FMT), "cache has dtype int8"),
        (TypeError, (k, v, cache, mapping.astype(np.float32), FMT), "slot_mapping has dtype float32"),
        (TypeError, (k, v, cache, [0, 1], FMT), "slot_mapping is a list"),
    ):
        with pytest.raises(error, match=message):
            store(*arguments, nonfinite="raise")
    assert (cache == 0xA5).all()


def test_a_cache_whose_slots_share_memory() -> None:
    cache = np.lib.stride_tricks.as_strided(empty_cache(), strides=(0, 288, 72, 1), writeable=True)
    with pytest.raises(ValueError, match="slots of it share memory"):
        store(*vectors(1), cache, np.zeros(1, np.int32), FMT)


def attention_in_float64(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    scores = np.einsum("hd,thd->ht", q, np.repeat(k, q.shape[0] // k.shape[1], axis=1)) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.einsum("ht,thd->hd", weights, np.repeat(v, q.shape[0] // v.shape[1], axis=1)))


def test_attention_is_that_of_what_is_read_back() -> None:
    rng = np.random.default_rng(5)
    lengths = [9, 0, 4]
    table = np.full((3, 4), -(2**31), np.int32)  # garbage past what is needed
    pages = iter(rng.permutation(BLOCKS))
    cache, kept = empty_cache(), {}
    for request, length in enumerate(lengths):
        needed = -(-length // BLOCK_SIZE)
        table[request, :needed] = [next(pages) for _ in range(needed)]
        k, v = vectors(length, seed=request)
        token = np.arange(length)
        store(k, v, cache, table[request, token // BLOCK_SIZE] * BLOCK_SIZE + token % BLOCK_SIZE, FMT)
        kept[request] = dequantize(quantize(k, v, FMT), FMT)
    rows = [(0, 9), (0, 8), (1, 0), (2, 4), (2, 1), (3, 5), (-1, 2)]
    q = rng.standard_normal((len(rows), 6, 64)).astype(np.float32)
    requests, seen = (np.array(x, np.int32) for x in zip(*rows, strict=True))
    got = paged_attention(q, cache, table, requests, seen, FMT, 0.125)
    for row, (request, length) in enumerate(rows):
        want = np.zeros((6, 64))
        if length and request in kept:
            k, v = kept[request]
            want = attention_in_float64(q[row].astype(np.float64), k[:length], v[:length], 0.125)
        np.testing.assert_allclose(got[row], want, rtol=1e-4, atol=1e-5)


def test_attention_that_cannot_be() -> None:
    q, cache = np.zeros((1, 2, 64), np.float32), empty_cache()
    table, zero, one = np.zeros((1, 1), np.int32), np.zeros(1, np.int32), np.ones(1, np.int32)
    for arguments, message in (
        ((q, cache, table, zero, 5 * one, FMT, 1.0), "block_table has 1 columns; request 0 has 5 keys and needs 2"),
        ((q, cache, table + 5, zero, one, FMT, 1.0), "block_table holds 5 for request 0; the cache has blocks 0 to 4"),
        ((q, cache, table - 1, zero, one, FMT, 1.0), "block_table holds -1"),
        ((q, cache, table, zero, -one, FMT, 1.0), "q_to_klen holds -1"),
        ((q, cache, table, zero, one, FMT, np.nan), "scale is nan; it must be a finite number in fp32"),
        ((q, cache, table, zero, one, FMT, 1e39), r"scale is 1e\+39; it must be a finite number in fp32"),
        ((q[:, :1], cache, table, zero, one, FMT, 1.0), "query has 1 heads, no multiple of the cache's 2"),
        ((q[..., :32], cache, table, zero, one, FMT, 1.0), r"query has shape \(1, 2, 32\)"),
        ((q, cache, table, np.zeros(2, np.int32), one, FMT, 1.0), r"q_to_req has shape \(2,\); it must be \[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            paged_attention(*arguments)


def test_what_is_not_finite_goes_through_attention_quietly() -> None:
    cache = empty_cache()
    store(*vectors(1), cache, np.zeros(1, np.int32), FMT)
    table, zero, one = np.zeros((1, 1), np.int32), np.zeros(1, np.int32), np.ones(1, np.int32)
    query = np.full((1, 2, 64), np.inf, np.float32)
    assert np.isnan(paged_attention(query, cache, table, zero, one, FMT, 1.0)).all()
