from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from octave_quant import CACHE_DTYPES, OctaveFormat

# Slot bytes at (head size, rotary size), from the format's page.
SLOTS = {
    "octave_k3v4": {(256, 64): 248, (128, 64): 128, (512, 128): 488, (192, 64): 184, (64, 64): 72, (256, 256): 272},
    "octave_k3v3": {(256, 64): 216, (128, 64): 112, (512, 128): 424, (192, 64): 160, (64, 64): 64, (256, 256): 240},
    "octave_k3v3_compact": {(256, 64): 196, (128, 64): 100, (512, 128): 388, (64, 64): 52, (256, 256): 196},
}


@pytest.mark.parametrize("name", CACHE_DTYPES)
def test_slot_bytes(name: str) -> None:
    for (head_size, rope_dim), slot_bytes in SLOTS[name].items():
        assert OctaveFormat.from_cache_dtype(name, head_size, rope_dim).slot_bytes == slot_bytes


def test_the_layout_at_256_64() -> None:
    fmt = OctaveFormat.from_cache_dtype("octave_k3v4", 256, 64)
    assert (fmt.off_k_nope, fmt.off_v, fmt.off_scales) == (32, 104, 232)
    assert (fmt.kernel_code, fmt.k_rotation_block, fmt.num_k_scales, fmt.num_scales) == (4, 64, 4, 5)
    fmt = OctaveFormat.from_cache_dtype("octave_k3v3_compact", 256, 64)
    assert (fmt.off_k_nope, fmt.off_v, fmt.off_scales) == (0, 96, 192)
    assert (fmt.kernel_code, fmt.k_rotation_block, fmt.num_k_scales, fmt.num_scales) == (19, 256, 1, 2)


def test_compact_keys_with_4_bit_values_have_a_code_and_no_name() -> None:
    assert OctaveFormat(128, 64, 4, compact=True).kernel_code == 20
    assert (4, True) not in CACHE_DTYPES.values()


def test_every_size_that_the_rules_allow() -> None:
    for head_size in range(64, 513, 64):
        for rope_dim in range(0, head_size + 1, 64):
            for v_bits in (3, 4):
                fmt = OctaveFormat(head_size, rope_dim, v_bits)
                assert fmt.off_scales + 2 * fmt.num_scales <= fmt.slot_bytes < fmt.off_scales + 2 * fmt.num_scales + 8
                assert fmt.slot_bytes % 8 == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((96, 64, 4), "head_size is 96; it must be a multiple of 64 from 64 to 512"),
        ((576, 64, 4), "head_size is 576"),
        ((0, 0, 4), "head_size is 0"),
        ((128, 32, 4), "rope_dim is 32; it must be a multiple of 64 from 0 to head_size"),
        ((128, 192, 4), "rope_dim is 192"),
        ((128, -64, 4), "rope_dim is -64"),
        ((128, 64, 5), "v_bits is 5; V has 3 or 4 bits"),
        ((192, 64, 3, True), "head_size is 192; a compact format needs a power of two"),
    ],
)
def test_sizes_against_the_rules(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OctaveFormat(*arguments)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"head_size is 64\.0; it must be an integer"):
        OctaveFormat(64.0, 64, 4)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="v_bits is True"):
        OctaveFormat(64, 64, True)
    with pytest.raises(TypeError, match="compact is 1"):
        OctaveFormat(64, 64, 4, 1)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"head_size is array\(\[64\]\)"):
        OctaveFormat(np.array([64]), 64, 4)  # type: ignore[arg-type]  # wrong on purpose
    of_numpy: list[Any] = [np.int64(64), np.int32(64), 4]
    fmt = OctaveFormat(*of_numpy)
    assert type(fmt.head_size) is int
    assert fmt == OctaveFormat(64, 64, 4)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="cache dtype is 'fp8'; known are octave_k3v4, octave_k3v3, octave_k3v3_compact"
    ):
        OctaveFormat.from_cache_dtype("fp8", 128, 64)
    with pytest.raises(ValueError, match=r"cache dtype is \['fp8'\]; known are"):
        OctaveFormat.from_cache_dtype(["fp8"], 128, 64)  # type: ignore[arg-type]  # wrong on purpose
