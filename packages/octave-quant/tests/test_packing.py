from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from octave_quant import pack, unpack

GOLDEN = np.load(Path(__file__).parent / "data" / "primitives.npz")


@pytest.mark.parametrize("bits", [3, 4])
def test_the_bytes_are_those_of_the_golden_vectors(bits: int) -> None:
    codes, packed = GOLDEN[f"codes{bits}"], GOLDEN[f"packed{bits}"]
    assert np.array_equal(pack(codes, bits), packed)
    assert np.array_equal(unpack(packed, codes.shape[-1], bits), codes)


def test_the_examples_of_the_format() -> None:
    assert pack(np.arange(8), 4).tobytes().hex() == "40516273"
    words = pack(np.arange(32) % 8, 3).view("<u4").tolist()
    assert [f"{word:08X}" for word in words] == ["FFAA5500", "FFAA5500", "AAAAAAAA"]


@given(seed=st.integers(0, 2**32 - 1), bits=st.sampled_from([3, 4]), rows=st.integers(0, 3), units=st.integers(1, 8))
def test_unpack_gives_back_what_pack_took(seed: int, bits: int, rows: int, units: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 1 << bits, (rows, 2, 32 * units), dtype=np.int64)
    packed = pack(codes, bits)
    assert packed.shape == (rows, 2, 4 * bits * units)
    assert packed.dtype == np.uint8
    assert np.array_equal(unpack(packed, codes.shape[-1], bits), codes)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="bits is 5"):
        pack(np.zeros(32, np.uint8), 5)
    with pytest.raises(ValueError, match="bits is 5"):
        unpack(np.zeros(20, np.uint8), 32, 5)
    with pytest.raises(ValueError, match="single number"):
        pack(np.uint8(1), 4)
    with pytest.raises(ValueError, match="single number"):
        unpack(np.uint8(1), 8, 4)
    with pytest.raises(ValueError, match="codes has 16 dimensions; it must be a multiple of 32"):
        pack(np.zeros(16, np.uint8), 3)
    with pytest.raises(ValueError, match="codes are from 0 to 8; 3 bits hold 0 to 7"):
        pack(np.arange(32) % 9, 3)
    with pytest.raises(ValueError, match="codes are from -1 to 0"):
        pack(np.full(32, -1) * (np.arange(32) == 3), 4)
    with pytest.raises(ValueError, match="dtype float64"):
        pack(np.zeros(32), 4)
    with pytest.raises(ValueError, match="20 bytes; 32 codes of 3 bits are 12"):
        unpack(np.zeros(20, np.uint8), 32, 3)
    with pytest.raises(ValueError, match="n has 33 dimensions; it must be a multiple of 32"):
        unpack(np.zeros(12, np.uint8), 33, 3)
    with pytest.raises(ValueError, match="dtype int64"):
        unpack(np.zeros(12, np.int64), 32, 3)
    with pytest.raises(TypeError, match=r"bits is 3\.0; it must be an integer"):
        pack(np.zeros(32, np.uint8), 3.0)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"n is 32\.0; it must be an integer"):
        unpack(np.zeros(12, np.uint8), 32.0, 3)  # type: ignore[arg-type]  # wrong on purpose
