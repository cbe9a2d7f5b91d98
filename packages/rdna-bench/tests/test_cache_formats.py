"""What each format gives back, against its definition and the bytes that it claims."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from octave_quant import CACHE_DTYPES, OctaveFormat, dequantize, quantize
from rdna_bench.cache_formats import CacheFormat, Fp8PerTensor
from rdna_bench.calibration import LayerMoments
from rdna_bench.octave_variants import CHANGES, octave_values
from rdna_bench.quality_formats import DEFAULT_FORMATS, base_of, make_format, needs_calibration, parse_formats

HEAD = 64


def random_kv(seed: int = 0, tokens: int = 200, heads: int = 2) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """K with a mean and unequal channels, its first token far away, as models have it."""
    rng = np.random.default_rng(seed)
    k, v = rng.standard_normal((2, tokens, heads, HEAD), np.float32)
    k = k * rng.uniform(0.3, 2, HEAD).astype(np.float32) + rng.normal(0, 2, (heads, HEAD)).astype(np.float32)
    k[0] = 0.1 * rng.standard_normal((heads, HEAD), np.float32)
    return k, v + rng.normal(0, 0.5, (heads, HEAD)).astype(np.float32)


def moments_of(k: NDArray[np.float32], v: NDArray[np.float32], q: NDArray[np.float32]) -> LayerMoments:
    def covariance(x: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.stack([np.cov(x[1:, head].T, bias=True) for head in range(x.shape[1])])

    return LayerMoments(
        k_mean=k[1:].mean(axis=0, dtype=np.float64),
        v_mean=v[1:].mean(axis=0, dtype=np.float64),
        k_covariance=covariance(k),
        v_covariance=covariance(v),
        q_moment=np.einsum("thi,thj->hij", q, q, dtype=np.float64) / len(q),
        output_moment=np.broadcast_to(np.eye(HEAD), (k.shape[1], HEAD, HEAD)),
    )


def make(name: str, moments: LayerMoments | None = None) -> CacheFormat:
    return make_format(name, HEAD, lambda: [moments] if moments is not None else [])


def error(x: NDArray[np.float32], read: NDArray[np.float32]) -> float:
    return float(np.linalg.norm(x - read) / np.linalg.norm(x))


@pytest.mark.parametrize(
    ("name", "slot_bytes", "largest_error"),
    [
        ("fp16", 256, 4e-4),
        ("bf16", 256, 3e-3),
        ("int8", 132, 0.01),
        ("fp8_e4m3", 128, 0.035),
        ("minmax4", 72, 0.11),
        ("octave_k3v4", 72, 0.105),
        ("octave_k3v3", 64, 0.2),
        ("octave_k3v3_compact", 52, 0.2),
    ],
)
def test_bytes_and_errors(name: str, slot_bytes: int, largest_error: float) -> None:
    k, v = random_kv()
    kv_format = make(name)
    assert kv_format.name == name
    assert kv_format.slot_bytes == slot_bytes
    read_k, read_v = kv_format.store(0, k, v)
    for x, read in ((k, read_k), (v, read_v)):
        assert read.dtype == np.float32
        assert read.shape == x.shape
        assert 0 < error(x, read) < largest_error


def test_fp8_maps_the_largest_magnitude_to_the_largest_number() -> None:
    k, v = random_kv()
    k *= 1e5
    read_k, _ = Fp8PerTensor(HEAD).store(0, k, v)
    largest = np.abs(k).argmax()
    assert read_k.ravel()[largest] == pytest.approx(k.ravel()[largest], rel=1e-6)


def test_integers_keep_the_ends_of_their_range() -> None:
    k, v = random_kv()
    for name, relative in (("int8", 1e-3), ("minmax4", 2e-3)):
        read, _ = make(name).store(0, k, v)
        ends = np.abs(k).argmax(axis=-1, keepdims=True)
        true, got = np.take_along_axis(k, ends, -1), np.take_along_axis(read, ends, -1)
        np.testing.assert_allclose(got, true, rtol=relative)
    zeros = np.zeros_like(k)
    for name in ("int8", "minmax4", "fp8_e4m3"):
        np.testing.assert_array_equal(make(name).store(0, zeros, zeros)[0], zeros)


@pytest.mark.parametrize(
    ("name", "head_size"),
    [(name, size) for name in CACHE_DTYPES for size in (64, 192, 256) if size != 192 or "compact" not in name],
)
def test_the_variants_begin_from_what_octave_quant_stores(name: str, head_size: int) -> None:
    fmt = OctaveFormat.from_cache_dtype(name, head_size, head_size)
    k, v = np.random.default_rng(1).standard_normal((2, 300, 2, head_size), np.float32)
    read_k, read_v = dequantize(quantize(k, v, fmt), fmt)
    k_bits = 3 if fmt.compact else 4
    own_k = octave_values(k, k_bits, fmt.k_rotation_block, fmt.k_rotation_block)
    own_v = octave_values(v, fmt.v_bits, fmt.v_rotation_block, head_size)
    # Sums are taken in another order here, which moves a scale to its neighbour now and then.
    for own, read in ((own_k, read_k), (own_v, read_v)):
        np.testing.assert_allclose(own, read, rtol=1e-3, atol=1e-5)
        assert np.isclose(own, read, rtol=1e-6, atol=1e-6).mean() > 0.995


def test_a_zero_vector_reads_back_as_zero_in_every_encoding() -> None:
    zeros = np.zeros((3, 1, HEAD), np.float32)
    for options in ({}, {"search": True}, {"least_squares": True}):
        np.testing.assert_array_equal(octave_values(zeros, 4, HEAD, HEAD, **options), zeros)


def test_search_and_least_squares_lower_the_error_and_search_keeps_the_slope() -> None:
    x = np.random.default_rng(2).standard_normal((500, 1, HEAD), np.float32)
    plain = octave_values(x, 3, HEAD, HEAD)
    searched = octave_values(x, 3, HEAD, HEAD, search=True)
    squares = octave_values(x, 3, HEAD, HEAD, least_squares=True)
    assert error(x, searched) < 0.97 * error(x, plain)
    assert error(x, squares) < error(x, plain)
    products, norms = np.sum(x * searched, axis=-1), np.sum(x * x, axis=-1)
    np.testing.assert_allclose(products / norms, 1, atol=1e-3)


@pytest.mark.parametrize("change", ["mean", "centred", "weighted", "balanced", "first64"])
def test_a_mean_subtracted_lowers_the_error_of_scores(change: str) -> None:
    k, v = random_kv(3)
    q = np.random.default_rng(4).standard_normal(k.shape, np.float32)
    base, variant = make("octave_k3v4"), make(f"octave_k3v4+{change}", moments_of(k, v, q))
    assert variant.slot_bytes == base.slot_bytes
    errors = []
    for kv_format in (base, variant):
        read_k, read_v = kv_format.store(0, k, v)
        errors.append((error(k, read_k), error(v, read_v)))
    assert errors[1][0] < 0.7 * errors[0][0]
    assert errors[1][1] < errors[0][1]


def test_a_centred_format_leaves_short_vectors_alone() -> None:
    k, v = random_kv(5)
    moments = moments_of(k, v, k)
    plain, mean, centred = (
        make(name, moments).store(0, k, v)[0] for name in ("octave_k3v4", "octave_k3v4+mean", "octave_k3v4+centred")
    )
    packed = make("octave_k3v4_centred", moments)
    assert packed.slot_bytes == 72
    np.testing.assert_allclose(packed.store(0, k, v)[0], centred, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(centred[0], plain[0], atol=1e-6)
    np.testing.assert_allclose(centred[1:], mean[1:], atol=1e-5)
    assert error(k[0], mean[0]) > 2 * error(k[0], centred[0])


def test_the_exact_first_token() -> None:
    k, v = random_kv(6)
    read_k, read_v = make("octave_k3v4+exact_first").store(0, k, v)
    plain_k, plain_v = make("octave_k3v4").store(0, k, v)
    np.testing.assert_array_equal(read_k[0], k[0])
    np.testing.assert_array_equal(read_v[0], v[0])
    np.testing.assert_allclose(read_k[1:], plain_k[1:], atol=1e-5)
    np.testing.assert_allclose(read_v[1:], plain_v[1:], atol=1e-5)


def test_formats_are_parsed_once_each_with_what_they_vary() -> None:
    assert parse_formats(["fp16", "fp16", "octave_k3v4+centred+search", "octave_k3v3"]) == (
        "fp16",
        "octave_k3v4",
        "octave_k3v4+centred+search",
        "octave_k3v3",
    )
    assert parse_formats(["octave_k3v3_centred"]) == ("octave_k3v3", "octave_k3v3_centred")
    assert base_of("octave_k3v4+centred") == base_of("octave_k3v4_centred") == "octave_k3v4"
    assert [
        name
        for name in ("int8", "octave_k3v3_centred", "octave_k3v3+search+mean", "octave_k3v3+search+first9")
        if needs_calibration(name)
    ] == ["octave_k3v3_centred", "octave_k3v3+search+mean"]
    assert base_of("int8") is None
    assert set(DEFAULT_FORMATS) >= {"fp16", "bf16", "int8", "fp8_e4m3", "minmax4", *CACHE_DTYPES}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("int9", "unknown format 'int9'; known: fp16"),
        ("", "unknown format ''"),
        ("octave_k3v4_centred+search", r"unknown format 'octave_k3v4_centred\+search'"),
        ("int8+centred", r"unknown format 'int8\+centred'"),
        ("octave_k3v4+", "unknown change ''"),
        ("octave_k3v4+firstN", "unknown change 'firstN'"),
        ("octave_k3v4+first1", "N must be 2 or more"),
        ("octave_k3v4+mean+first8", "mean and first8 exclude each other"),
        ("octave_k3v4+centred+mean", "centred and mean exclude each other"),
        ("octave_k3v4+search+least_squares", "search and least_squares exclude each other"),
    ],
)
def test_names_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_formats([name])


def test_changes_are_all_served() -> None:
    k, v = random_kv(7)
    moments = moments_of(k, v, k)
    for change in CHANGES:
        kv_format = make(f"octave_k3v3+{change.replace('N', '9')}", moments)
        assert np.isfinite(kv_format.store(0, k, v)[0]).all()


def test_head_sizes_that_are_refused() -> None:
    for name in ("minmax4", "octave_k3v4"):
        with pytest.raises(ValueError, match="96"):
            make_format(name, 96, list)
