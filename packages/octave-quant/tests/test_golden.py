"""Byte for byte with the golden vectors of the format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from octave_quant import OctaveFormat, dequantize, paged_attention, quantize

DATA = Path(__file__).parent / "data"
NAMES = ("k3v4", "k3v3", "k3v3_compact")
HEADS = ("d128_r64", "d256_r64")


@pytest.fixture(params=HEADS)
def golden(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    return dict(np.load(DATA / f"{request.param}.npz"))


def format_of(name: str, golden: dict[str, np.ndarray]) -> OctaveFormat:
    return OctaveFormat.from_cache_dtype(f"octave_{name}", int(golden["head_size"]), int(golden["rope_dim"]))


def rows_named(golden: dict[str, np.ndarray], *names: str) -> np.ndarray:
    rows = dict(zip(golden["case_names"].tolist(), golden["case_rows"].tolist(), strict=True))
    return np.concatenate([np.arange(*rows[name]) for name in names])


@pytest.mark.parametrize("name", NAMES)
def test_layout(name: str, golden: dict[str, np.ndarray]) -> None:
    fmt = format_of(name, golden)
    layout = [fmt.kernel_code, fmt.off_k_nope, fmt.off_v, fmt.off_scales, fmt.num_scales, fmt.slot_bytes]
    assert layout == golden[f"{name}_layout"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_slots(name: str, golden: dict[str, np.ndarray]) -> None:
    fmt, want = format_of(name, golden), golden[f"{name}_slots"]
    got = quantize(golden["K"][:, None], golden["V"][:, None], fmt)[:, 0]
    overflow, nonfinite = rows_named(golden, "scale_overflow"), rows_named(golden, "nan_inf")
    exact = np.setdiff1d(np.arange(len(want)), [*overflow, *nonfinite])
    assert len(exact) == len(want) - len(overflow) - len(nonfinite)
    np.testing.assert_array_equal(got[exact], want[exact])

    # Saturated where the golden vectors hold infinity, equal in every other byte.
    scales = slice(fmt.off_scales, fmt.off_scales + 2 * fmt.num_scales)
    np.testing.assert_array_equal(got[overflow, : fmt.off_scales], want[overflow, : fmt.off_scales])
    theirs = want[overflow, scales].copy().view(np.float16)
    assert np.isinf(theirs).any()
    np.testing.assert_array_equal(got[overflow, scales].copy().view(np.float16), np.minimum(theirs, 65504))

    ours, theirs = (slots[nonfinite, scales].copy().view(np.float16) for slots in (got, want))
    np.testing.assert_array_equal(ours == 0, theirs == 0)
    assert (ours == 0).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rotated", [False, True])
def test_vectors(name: str, rotated: bool, golden: dict[str, np.ndarray]) -> None:
    got = dequantize(golden[f"{name}_slots"][:, None], format_of(name, golden), rotated)
    for array, letter in zip(got, "kv", strict=True):
        want = golden[f"{name}_{letter}{'_rot' if rotated else ''}"]
        finite = np.isfinite(want).all(axis=1)
        assert finite.sum() >= len(want) - 1
        np.testing.assert_array_equal(array[finite, 0], want[finite])


@pytest.mark.parametrize("name", NAMES)
def test_paged_attention(name: str) -> None:
    golden = np.load(DATA / "attention_d256.npz")
    got = paged_attention(
        golden["q"],
        golden[f"{name}_cache"],
        golden["block_table"],
        golden["q_to_req"],
        golden["q_to_klen"],
        OctaveFormat.from_cache_dtype(f"octave_{name}", 256, 64),
        float(golden["scale"]),
    )
    np.testing.assert_allclose(got, golden[f"{name}_out"], rtol=1e-5, atol=3e-6)
    assert (got[-1] == 0).all()


def test_the_worked_slot() -> None:
    unit = np.zeros((1, 1, 256), np.float32)
    unit[..., 0] = 1
    fmt = OctaveFormat(256, 64, 4)
    slot = quantize(unit, unit, fmt)[0, 0]
    assert slot[:32].tolist() == [0x44] * 32
    assert slot[fmt.off_scales :][:2].tolist() == [0xF4, 0x31]
    assert float(slot[fmt.off_scales :][:2].view(np.float16)[0]) == 0.18603515625
    assert slot[fmt.off_v :][:128].tolist() == [0x44] * 128
    assert slot[fmt.off_scales + 8 :][:2].tolist() == [0xF4, 0x2D]
    assert slot[fmt.off_scales + 10 :].tolist() == [0] * (fmt.slot_bytes - fmt.off_scales - 10)
    fmt = OctaveFormat(256, 64, 3)
    slot = quantize(unit, unit, fmt)[0, 0]
    assert slot[fmt.off_v :][:64].tolist() == [0xAA] * 64
    assert slot[fmt.off_v + 64 :][:32].tolist() == [0] * 32
    assert slot[fmt.off_scales + 8 :][:2].tolist() == [0xB0, 0x2D]


def test_a_group_of_zeros() -> None:
    zeros = np.zeros((1, 1, 128), np.float16)
    fmt = OctaveFormat(128, 64, 4)
    slot = quantize(zeros, zeros, fmt)[0, 0]
    assert slot[: fmt.off_k_nope].tolist() == [0x77] * 32
    assert slot[fmt.off_k_nope : fmt.off_v].tolist() == [0xFF] * 16 + [0] * 8
    assert slot[fmt.off_v : fmt.off_scales].tolist() == [0x77] * 64
    assert not slot[fmt.off_scales :].any()
    for slots in (slot, np.zeros_like(slot)):
        assert not any(x.any() for x in dequantize(slots[None, None], fmt))
