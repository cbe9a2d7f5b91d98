from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from octave_quant import OctaveFormat, tokens_that_fit

FMT = OctaveFormat(256, 64, 4)


def test_an_example() -> None:
    page = 16 * 4 * FMT.slot_bytes
    assert tokens_that_fit(10 * 64 * page, FMT, 4, 64, 16) == 160
    assert tokens_that_fit(10 * 64 * page - 1, FMT, 4, 64, 16) == 144
    assert tokens_that_fit(10 * 64 * page, FMT, 4, 64, 16, page_align=page + 1) == 144


@given(
    size=st.integers(0, 2**40),
    heads=st.integers(1, 16),
    layers=st.integers(1, 100),
    block_size=st.integers(1, 1600),
    page_align=st.integers(1, 2**16),
)
def test_the_blocks_fit_and_no_more_would(size: int, heads: int, layers: int, block_size: int, page_align: int) -> None:
    tokens = tokens_that_fit(size, FMT, heads, layers, block_size, page_align)
    blocks, rest = divmod(tokens, block_size)
    assert rest == 0
    page = block_size * heads * FMT.slot_bytes
    page += -page % page_align
    assert blocks * layers * page <= size < (blocks + 1) * layers * page


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("bytes", -1, ValueError),
        ("num_kv_heads", 0, ValueError),
        ("num_layers", 0, ValueError),
        ("block_size", 0, ValueError),
        ("page_align", 0, ValueError),
        ("bytes", 1e9, TypeError),
        ("block_size", True, TypeError),
    ],
)
def test_what_cannot_be_is_refused_by_name(argument: str, value: Any, error: type[Exception]) -> None:
    arguments = {"bytes": 10**9, "num_kv_heads": 4, "num_layers": 2, "block_size": 16, "page_align": 1, argument: value}
    with pytest.raises(error, match=f"^{argument} is {value}; it must be"):
        tokens_that_fit(fmt=FMT, **arguments)
