from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from octave_quant import rotate, signs, unrotate

GOLDEN = np.load(Path(__file__).parent / "data" / "primitives.npz")


@pytest.mark.parametrize("block", [64, 128, 256, 512])
def test_the_transform_is_exact_on_the_golden_vectors(block: int) -> None:
    x = GOLDEN["x"]
    # The golden vectors are transformed without signs; multiplying by a sign twice changes nothing.
    assert np.array_equal(rotate(x * signs(x.shape[-1]), block), GOLDEN[f"fwht_{block}"])


def test_the_unit_vector_of_the_format() -> None:
    unit = np.zeros(256, np.float32)
    unit[0] = 1
    rotated = rotate(unit, 64)
    assert rotated[:64].tolist() == [-0.125] * 64
    assert not rotated[64:].any()


@given(
    seed=st.integers(0, 2**32 - 1),
    block=st.sampled_from([64, 128, 256]),
    rows=st.integers(0, 5),
    blocks=st.integers(1, 3),
)
def test_unrotate_gives_back_what_rotate_took(seed: int, block: int, rows: int, blocks: int) -> None:
    x = np.random.default_rng(seed).standard_normal((rows, block * blocks)).astype(np.float32)
    y = rotate(x, block)
    assert np.allclose(unrotate(y, block), x, atol=2e-6)
    # The rotation is orthonormal: lengths stay.
    assert np.allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-6)


def test_blocks_do_not_mix() -> None:
    x = np.random.default_rng(0).standard_normal(256).astype(np.float16)
    y = rotate(x, 64)
    assert y.dtype == np.float32
    x[64:128] = 0
    changed = rotate(x, 64) != y
    assert changed[64:128].any()
    assert not np.delete(changed, np.s_[64:128]).any()


@pytest.mark.parametrize("function", [rotate, unrotate])
def test_what_cannot_be_is_refused(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="block is 96; the transform needs a power of two"):
        function(np.zeros(192), 96)
    with pytest.raises(ValueError, match="192 dimensions; blocks of 128 do not divide"):
        function(np.zeros(192), 128)
    with pytest.raises(ValueError, match="a single number"):
        function(1.0, 64)
    with pytest.raises(TypeError, match=r"block is 64\.0; it must be an integer"):
        function(np.zeros(64), 64.0)
    with pytest.raises(TypeError, match="has dtype complex128; it must be of real numbers"):
        function(np.zeros(64, complex), 64)
