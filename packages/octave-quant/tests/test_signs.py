from __future__ import annotations

import numpy as np
import pytest
from octave_quant import sign_bits, signs

# The format's own listing of the 512 signs.
WORDS = """82C270EB 9E0D4635 41D23DB1 68C675E6 F687E132 B5CABDC3 1E0AC1A1 74AFC721
           53685D96 027DDB37 E256F797 05CB43D3 81A5B38C EB391759 B4510DBF 20784184"""


def test_the_words_are_those_of_the_format() -> None:
    assert sign_bits(512).dtype == np.int32
    assert [f"{word:08X}" for word in sign_bits(512).view(np.uint32)] == WORDS.split()


def test_signs_and_words_say_the_same() -> None:
    bits = [word >> i & 1 for word in sign_bits(256).tolist() for i in range(32)]
    assert signs(256).tolist() == [-1.0 if bit else 1.0 for bit in bits]
    assert signs(256).dtype == np.float32


def test_a_shorter_head_takes_a_prefix() -> None:
    assert np.array_equal(signs(64), signs(512)[:64])
    assert np.array_equal(sign_bits(64), sign_bits(512)[:2])


def test_a_caller_cannot_change_the_signs_of_another() -> None:
    signs(64)[:] = 0
    assert signs(64)[0] == -1.0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="n is -1"):
        signs(-1)
    with pytest.raises(ValueError, match="n is 48; a word holds 32"):
        sign_bits(48)
    for function in (signs, sign_bits):
        for n in (64.0, True, None):
            with pytest.raises(TypeError, match=f"n is {n}; it must be an integer"):
                function(n)  # type: ignore[arg-type]  # wrong on purpose
