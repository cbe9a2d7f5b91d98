"""Slots of every legal size, against a plain reading of the format's description: a coordinate and a bit at a time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from octave_quant import OctaveFormat, dequantize, quantize, sign_bits

LEVELS = {
    3: [-127, -79, -45, -14, 14, 45, 79, 127],
    4: [-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126],
}
MULTIPLIERS = {3: 59, 4: 46}
FORMATS = [
    OctaveFormat(head_size, rope_dim, v_bits, compact)
    for head_size in range(64, 513, 64)
    for rope_dim in range(0, head_size + 1, 64)
    for v_bits in (3, 4)
    for compact in (False, True)
    if not compact or head_size in (64, 128, 256, 512)
]


def hadamard(n: int) -> NDArray[np.float64]:
    """Entry (i, j) is minus where i and j have an odd number of bits in common."""
    common = np.arange(n)[:, None] & np.arange(n)
    odd = np.array([bin(i).count("1") % 2 for i in range(n)], bool)[common]
    return np.asarray(np.where(odd, -1.0, 1.0) / np.sqrt(n))


def turned(x: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    n = x.shape[-1]
    minus = [int(sign_bits(n)[d // 32]) >> d % 32 & 1 for d in range(n)]
    blocks = (x * np.where(minus, -1.0, 1.0)).reshape(*x.shape[:-1], -1, block)
    return np.asarray(blocks @ hadamard(block)).reshape(x.shape)


def code_at(plane: bytes, d: int, n: int, bits: int) -> int:
    """Code d of the n in a plane."""
    if bits == 4:
        return plane[d // 8 * 4 + d % 4] >> 4 * (d % 8 // 4) & 15
    low = plane[d // 16 * 4 + d % 4] >> 2 * (d % 16 // 4) & 3
    high = plane[n // 4 + d // 32 * 4 + d % 4] >> d % 32 // 4 & 1
    return low | high << 2


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f"{f.head_size}-{f.rope_dim}-{f.kernel_code}")
def test_a_slot_says_what_the_format_says(fmt: OctaveFormat) -> None:
    n, wide = fmt.head_size, 0 if fmt.compact else fmt.rope_dim
    key, value = np.random.default_rng(n + fmt.rope_dim).standard_normal((2, 1, 1, n)).astype(np.float32)
    slots = quantize(key, value, fmt)
    slot = slots[0, 0].tobytes()
    power_of_two = n in (64, 128, 256, 512)
    k_block, v_block = n if fmt.compact else 64, n if power_of_two else 64
    planes = [(wide, 4), (n - wide, 3), (n, fmt.v_bits)]
    codes: list[tuple[int, int]] = []  # of K, then of V, with the bits of each
    at = 0
    for dims, bits in planes:
        size = dims * bits // 8
        codes += [(code_at(slot[at : at + size], d, dims, bits), bits) for d in range(dims)]
        at += size
    num_scales = n // k_block + 1
    scales = np.frombuffer(slot[at : at + 2 * num_scales], "<f2").astype(np.float64)
    assert not any(slot[at + 2 * num_scales :])
    assert len(slot) == -(-(at + 2 * num_scales) // (4 if fmt.compact else 8)) * (4 if fmt.compact else 8)

    y = np.concatenate((turned(key[0, 0].astype(float), k_block), turned(value[0, 0].astype(float), v_block)))
    groups = [slice(first, first + k_block) for first in range(0, n, k_block)] + [slice(n, 2 * n)]
    read = np.empty(2 * n)
    for group, scale in zip(groups, scales, strict=True):
        bits = codes[group.start][1]
        levels = np.array(LEVELS[bits], float)
        given = levels[[code for code, _ in codes[group]]]
        t = y[group] / np.sqrt(np.mean(y[group] ** 2)) * MULTIPLIERS[bits]
        # The nearest level, but for coordinates so near to a midpoint that fp32 may round them across.
        best = np.abs(t[:, None] - levels).min(axis=1)
        assert (np.abs(t - given) <= best + 1e-3).all()
        assert scale == pytest.approx(64 * np.sum(y[group] ** 2) / np.sum(y[group] * given), rel=2**-11 + 1e-5)
        read[group] = given * scale / 64

    k_rotated, v_rotated = dequantize(slots, fmt, rotated=True)
    np.testing.assert_allclose(np.concatenate((k_rotated[0, 0], v_rotated[0, 0])), read, rtol=1e-6)
    for got, want, block in zip(dequantize(slots, fmt), (read[:n], read[n:]), (k_block, v_block), strict=True):
        np.testing.assert_allclose(turned(got[0, 0].astype(float), block), want, atol=1e-5)
