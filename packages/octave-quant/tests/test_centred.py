"""The centred formats: what their signs mean, that they are the plain formats otherwise, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from octave_quant import CACHE_DTYPES, OctaveFormat, dequantize, quantize, unrotate
from octave_quant.centred import CENTRED_CACHE_DTYPES, CentredFormat, dequantize_centred, quantize_centred

SIZES = [(64, 64), (256, 64), (192, 128), (128, 0)]


def formats() -> list[tuple[str, int, int]]:
    return [
        (name, head_size, rope_dim)
        for name in CENTRED_CACHE_DTYPES
        for head_size, rope_dim in SIZES
        if not ("compact" in name and head_size == 192)
    ]


def around(rng: np.random.Generator, tokens: int, mean: NDArray[np.float32]) -> NDArray[np.float32]:
    return mean + rng.standard_normal((tokens, *mean.shape), np.float32)


def make(name: str, head_size: int, rope_dim: int, size: float = 3.0) -> CentredFormat:
    means = size * np.random.default_rng(head_size).standard_normal((2, 3, head_size), np.float32)
    return CentredFormat.from_cache_dtype(name, head_size, rope_dim, *means)


def signs_of(slots: NDArray[np.uint8], fmt: CentredFormat) -> NDArray[np.bool_]:
    end = fmt.slots.off_scales + 2 * fmt.slots.num_scales
    scales = np.ascontiguousarray(slots[..., fmt.slots.off_scales : end]).view(np.float16)
    return np.signbit(scales)


@pytest.mark.parametrize(("name", "head_size", "rope_dim"), formats())
def test_slots_are_those_of_the_shorter_vector(name: str, head_size: int, rope_dim: int) -> None:
    fmt = make(name, head_size, rope_dim)
    rng = np.random.default_rng(1)
    key, value = around(rng, 40, fmt.key_mean), around(rng, 40, fmt.value_mean)
    key[::4] -= fmt.key_mean
    value[::5] -= fmt.value_mean
    slots = quantize_centred(key, value, fmt)
    signs = signs_of(slots, fmt)
    plain = quantize(key, value, fmt.slots)
    without = quantize(key - fmt.key_mean, value - fmt.value_mean, fmt.slots)
    assert slots.shape == plain.shape == (40, 3, fmt.slot_bytes)
    read = dequantize_centred(slots, fmt)
    for x, got, as_plain, as_less, mean, centred in (
        (
            key,
            read[0],
            dequantize(plain, fmt.slots)[0],
            dequantize(without, fmt.slots)[0],
            fmt.key_mean,
            signs[..., :-1],
        ),
        (
            value,
            read[1],
            dequantize(plain, fmt.slots)[1],
            dequantize(without, fmt.slots)[1],
            fmt.value_mean,
            signs[..., -1:],
        ),
    ):
        groups = (40, 3, centred.shape[-1], -1)
        lengths = [np.square(y, dtype=np.float64).reshape(groups).sum(axis=-1) for y in (x - mean, x)]
        np.testing.assert_array_equal(centred, lengths[0] < lengths[1])
        assert 0.5 < centred.mean() < 0.9
        expected = np.where(centred[..., None], (as_less + mean).reshape(groups), as_plain.reshape(groups))
        np.testing.assert_array_equal(got.reshape(groups), expected)


@pytest.mark.parametrize("name", CACHE_DTYPES)
def test_without_a_mean_the_bytes_are_the_plain_ones(name: str) -> None:
    plain = OctaveFormat.from_cache_dtype(name, 128, 64)
    fmt = CentredFormat(plain, np.zeros((2, 128)), np.zeros((2, 128)))
    key, value = np.random.default_rng(2).standard_normal((2, 30, 2, 128), np.float32)
    slots = quantize_centred(key, value, fmt)
    np.testing.assert_array_equal(slots, quantize(key, value, plain))
    for got, expected in zip(dequantize_centred(slots, fmt), dequantize(slots, plain), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "head_size", "rope_dim"), formats())
def test_the_rotated_basis(name: str, head_size: int, rope_dim: int) -> None:
    fmt = make(name, head_size, rope_dim)
    rng = np.random.default_rng(3)
    slots = quantize_centred(around(rng, 20, fmt.key_mean), around(rng, 20, fmt.value_mean), fmt)
    before = slots.copy()
    key, value = dequantize_centred(slots, fmt)
    rotated_key, rotated_value = dequantize_centred(slots, fmt, rotated=True)
    np.testing.assert_array_equal(slots, before)
    np.testing.assert_allclose(unrotate(rotated_key, fmt.slots.k_rotation_block), key, atol=2e-5)
    np.testing.assert_allclose(unrotate(rotated_value, fmt.slots.v_rotation_block), value, atol=2e-5)


def test_a_kernel_needs_one_number_a_query_and_one_sum_of_weights() -> None:
    """Scores and outputs from the codes of the slots alone, as `dequantize_centred` says a kernel makes them."""
    fmt = make("octave_k3v4_centred", 256, 64, size=1.0)
    rng = np.random.default_rng(4)
    key, value = around(rng, 50, fmt.key_mean), around(rng, 50, fmt.value_mean)
    key[0], value[0] = 0.1 * key[0] - fmt.key_mean, 0.1 * value[0] - fmt.value_mean
    query = rng.standard_normal((3, 256), np.float32) / 16
    slots = quantize_centred(key, value, fmt)
    centred = signs_of(slots, fmt)
    assert not centred[0].any()
    assert centred[1:].mean() > 0.9
    plain = slots.copy()
    plain[..., fmt.slots.off_scales + 1 : fmt.slots.off_scales + 2 * fmt.slots.num_scales : 2] &= 0x7F
    codes_k, codes_v = dequantize(plain, fmt.slots)
    of_means = (query * fmt.key_mean).reshape(3, 4, 64).sum(axis=-1)
    scores = np.einsum("hd,thd->ht", query, codes_k) + np.einsum("thb,hb->ht", centred[..., :-1], of_means)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    output = np.einsum("ht,thd->hd", weights, codes_v)
    output += np.einsum("ht,th->h", weights, centred[..., -1])[:, None] * fmt.value_mean
    read_k, read_v = dequantize_centred(slots, fmt)
    expected_scores = np.einsum("hd,thd->ht", query, read_k)
    expected_weights = np.exp(expected_scores) / np.exp(expected_scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(output, np.einsum("ht,thd->hd", expected_weights, read_v), atol=1e-4)


@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0, 100))
def test_no_group_is_further_off_than_in_the_plain_format(seed: int, size: float) -> None:
    fmt = make("octave_k3v3_centred", 64, 64, size=size)
    rng = np.random.default_rng(seed)
    key, value = around(rng, 8, fmt.key_mean), around(rng, 8, fmt.value_mean)
    read = dequantize_centred(quantize_centred(key, value, fmt), fmt)
    for x, got, mean in ((key, read[0], fmt.key_mean), (value, read[1], fmt.value_mean)):
        shorter = np.minimum(np.linalg.norm(x, axis=-1), np.linalg.norm(x - mean, axis=-1))
        assert (np.linalg.norm(x - got, axis=-1) < 0.5 * shorter).all()


def test_groups_that_are_not_finite_read_back_as_zero_or_raise() -> None:
    fmt = make("octave_k3v4_centred", 256, 64)
    key, value = np.zeros((2, 3, 256), np.float32), np.zeros((2, 3, 256), np.float32)
    key[0, 1, 70], value[1, 2, 5] = np.nan, np.inf
    slots = quantize_centred(key, value, fmt)
    read_k, read_v = dequantize_centred(slots, fmt)
    assert not read_k.any()
    assert not read_v.any()
    with pytest.raises(ValueError, match="NaN or Inf at token 0, head 1"):
        quantize_centred(key, value, fmt, nonfinite="raise")


def test_vectors_too_long_to_square_are_left_alone() -> None:
    fmt = make("octave_k3v4_centred", 64, 64)
    key = np.full((1, 3, 64), 1e30, np.float32)
    slots = quantize_centred(key, key, fmt)
    assert not signs_of(slots, fmt).any()


@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_narrow_elements(element: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes") if element == "bfloat16" else None
    fmt = make("octave_k3v4_centred", 64, 64)
    rng = np.random.default_rng(5)
    dtype = np.dtype(ml_dtypes.bfloat16 if ml_dtypes else np.float16)
    key, value = around(rng, 9, fmt.key_mean).astype(dtype), around(rng, 9, fmt.value_mean).astype(dtype)
    wide = quantize_centred(key.astype(np.float32), value.astype(np.float32), fmt)
    np.testing.assert_array_equal(quantize_centred(key, value, fmt), wide)


def test_torch_tensors_give_tensors() -> None:
    torch = pytest.importorskip("torch")
    fmt = make("octave_k3v4_centred", 64, 64)
    rng = np.random.default_rng(6)
    key, value = around(rng, 9, fmt.key_mean), around(rng, 9, fmt.value_mean)
    slots = quantize_centred(torch.from_numpy(key), torch.from_numpy(value), fmt)
    np.testing.assert_array_equal(slots.numpy(), quantize_centred(key, value, fmt))
    read_k, read_v = dequantize_centred(slots, fmt)
    np.testing.assert_array_equal(read_k.numpy(), dequantize_centred(slots.numpy(), fmt)[0])
    assert isinstance(read_v, torch.Tensor)


def test_names_codes_and_sizes() -> None:
    codes = {}
    for name, plain in CENTRED_CACHE_DTYPES.items():
        fmt = make(name, 256, 64)
        codes[name] = fmt.kernel_code
        assert name == f"{plain}_centred"
        assert fmt.slots == OctaveFormat.from_cache_dtype(plain, 256, 64)
        assert fmt.slot_bytes == fmt.slots.slot_bytes
    assert codes == {"octave_k3v4_centred": 36, "octave_k3v3_centred": 35, "octave_k3v3_compact_centred": 51}


def refused() -> list[tuple[str, Any, str]]:
    plain = OctaveFormat(64, 64, 4)
    mean, fmt = np.zeros((3, 64)), make("octave_k3v4_centred", 64, 64)
    rows, slots = np.zeros((2, 3, 64), np.float32), np.zeros((2, 3, 72), np.uint8)
    return [
        ("name", lambda: CentredFormat.from_cache_dtype("octave_k3v4", 64, 64, mean, mean), "octave_k3v4_centred"),
        ("shape of a mean", lambda: CentredFormat(plain, mean[0], mean), r"key_mean has shape \(64,\)"),
        ("head size of a mean", lambda: CentredFormat(plain, mean, mean[:, 1:]), r"it must be \[H, 64\]"),
        ("heads of the means", lambda: CentredFormat(plain, mean, mean[1:]), "they must be the same"),
        ("NaN", lambda: CentredFormat(plain, mean + np.nan, mean), "key_mean has NaN or Inf"),
        ("heads", lambda: quantize_centred(rows[:, 1:], rows[:, 1:], fmt), "2 KV heads; the format's means are of 3"),
        ("heads of slots", lambda: dequantize_centred(slots[:, 1:], fmt), "2 KV heads"),
        ("shape of slots", lambda: dequantize_centred(slots[..., 1:], fmt), r"it must be \[T, H, 72\]"),
        ("shape of a key", lambda: quantize_centred(rows[..., 1:], rows, fmt), "key has shape"),
        ("policy", lambda: quantize_centred(rows, rows, fmt, nonfinite="drop"), "nonfinite is 'drop'"),
    ]


@pytest.mark.parametrize(("call", "message"), [case[1:] for case in refused()], ids=[case[0] for case in refused()])
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_slots_of_another_dtype_are_refused() -> None:
    with pytest.raises(TypeError, match="slots are uint8"):
        dequantize_centred(np.zeros((2, 3, 72), np.int8), make("octave_k3v4_centred", 64, 64))
