from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdna_kernels import ArgumentError
from rdna_kernels.decode_values import check_values

PAGES = 6


def check(lengths: list[int], table: list[list[int]]) -> None:
    rows = np.array(table, np.int32).reshape(len(lengths), len(table[0]) if table else 0)
    check_values(np.array(lengths, np.int32), rows, 16, PAGES)


def test_good_values_and_garbage_past_the_length_pass() -> None:
    check([16, 17, 0], [[0, -1, 99], [5, 0, -7], [-1, -1, -1]])
    check([], [])
    check([0, 0], [[], []])


@pytest.mark.parametrize(
    ("lengths", "table", "message"),
    [
        ([3, -1], [[0], [0]], r"seq_lens\[1\] is -1"),
        ([3, 33], [[0, 1], [2, 3]], r"block_table has 2 columns; seq_lens\[1\] = 33 needs 3 pages of 16"),
        ([2**30], [[0]], r"block_table has 1 columns; seq_lens\[0\] = 1073741824 needs 67108864 pages"),
        ([1, 2**31 - 1], [[0], [0]], r"seq_lens\[1\] is 2147483647; a sequence has at most 1073741824"),
        ([16, 17], [[0, 1], [1, -1]], r"block_table\[1, 1\] is -1, inside the 17 tokens.*pages 0 to 5"),
        ([16, 17], [[6, 1], [1, 2]], r"block_table\[0, 0\] is 6, inside the 16 tokens"),
        ([1], [[2**31 - 1]], r"block_table\[0, 0\] is 2147483647"),
    ],
)
def test_bad_values_are_named(lengths: list[int], table: list[list[int]], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check(lengths, table)


@given(st.lists(st.tuples(st.integers(0, 50), st.lists(st.integers(-2, 8), min_size=4, max_size=4)), max_size=4))
def test_refused_exactly_when_an_id_inside_a_length_is_bad(sequences: list[tuple[int, list[int]]]) -> None:
    bad = any(not 0 <= row[position // 16] < PAGES for length, row in sequences for position in range(length))
    lengths, table = [length for length, _ in sequences], [row for _, row in sequences]
    if bad:
        with pytest.raises(ArgumentError, match="inside the"):
            check(lengths, table)
    else:
        check(lengths, table)
