from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from rdna_kernels import ArgumentError
from rdna_kernels.layout import (
    Layout,
    Placed,
    element_strides,
    extent,
    require_aligned_strides,
    require_apart,
    require_dense_last,
    require_dtype,
    require_no_overlap,
    require_shape,
    share_memory,
)


def layout(array: np.ndarray[Any, Any]) -> Layout:
    return (array.shape, array.strides, array.dtype)


def placed(name: str, array: np.ndarray[Any, Any]) -> Placed:
    return Placed(name, array.__array_interface__["data"][0], layout(array), array.itemsize)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_extent_is_what_numpy_says(shape: list[int], data: st.DataObject) -> None:
    base = np.zeros([size + 1 for size in shape], np.float32)
    order = data.draw(st.permutations(range(len(shape))))
    view = base[tuple(slice(size) for size in shape)].transpose(order)
    low, high = np.lib.array_utils.byte_bounds(view)
    assert extent(layout(view), 4) == (high - low if view.size else 0)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=3))
def test_strides_that_pass_never_meet(dimensions: list[tuple[int, int]]) -> None:
    shape = tuple(size for size, _ in dimensions)
    strides = tuple(2 * step for _, step in dimensions)
    offsets = sum(
        np.arange(size).reshape([-1 if axis == here else 1 for axis in range(len(shape))]) * strides[here]
        for here, size in enumerate(shape)
    )
    meets = len(np.unique(np.asarray(offsets))) != np.prod(shape)
    if meets:
        with pytest.raises(ArgumentError, match=r"x has overlapping strides.*pass a copy"):
            require_apart("x", (shape, strides, None), 2)
    elif sorted(strides) == [2 * int(np.prod(sorted(shape)[:n])) for n in range(len(shape))]:
        require_apart("x", (shape, strides, None), 2)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3), (2, 1, 0, 3)])
def test_any_order_of_dimensions_and_gaps_pass(order: tuple[int, ...]) -> None:
    view = np.zeros((5, 3, 16, 160), np.float16)[::2, :, :, :128].transpose(order)
    require_apart("x", layout(view), 2)
    require_dense_last("x", layout(view), 2)
    require_aligned_strides("x", layout(view))


@pytest.mark.parametrize(
    "view",
    [
        np.broadcast_to(np.zeros((1, 8), np.float16), (4, 8)),
        as_strided(np.zeros(64, np.float16), (4, 16), (16, 2)),
        as_strided(np.zeros(64, np.float16), (2, 2, 16), (32, 32, 2)),
    ],
    ids=["broadcast", "sliding", "two dimensions at once"],
)
def test_overlapping_views_are_refused(view: np.ndarray[Any, Any]) -> None:
    with pytest.raises(ArgumentError, match="x has overlapping strides"):
        require_apart("x", layout(view), 2)


def test_negative_strides_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"x has a negative stride \(-32 bytes\) in dimension 0"):
        require_apart("x", layout(np.zeros((4, 16), np.float16)[::-1]), 2)


def test_strides_of_size_one_dimensions_and_empty_arrays_do_not_matter() -> None:
    odd = as_strided(np.zeros(64, np.float16), (1, 16), (6, 2))
    require_apart("x", layout(odd), 2)
    require_aligned_strides("x", layout(odd))
    assert element_strides(layout(odd), 2) == (0, 1)
    empty = as_strided(np.zeros(64, np.float16), (0, 16), (0, 6))
    require_apart("x", layout(empty), 2)
    require_aligned_strides("x", layout(empty))
    require_dense_last("x", layout(empty), 2)


def test_messages_name_the_array_and_what_is_allowed() -> None:
    array = np.zeros((4, 24), np.float16)
    with pytest.raises(ArgumentError, match=r"x has shape \(4, 24\); it must be \[rows, 8\] = \[any, 8\]"):
        require_shape("x", layout(array), (None, 8), "[rows, 8]")
    with pytest.raises(ArgumentError, match="x has dtype float16; it must be bfloat16"):
        require_dtype("x", layout(array), "bfloat16")
    with pytest.raises(ArgumentError, match="x has dtype >f2, of the other byte order"):
        require_dtype("x", layout(array.astype(">f2")), "float16")
    with pytest.raises(ArgumentError, match="x has a last dimension with a stride of 4 bytes"):
        require_dense_last("x", layout(array[:, ::2]), 2)
    with pytest.raises(
        ArgumentError, match="x has a stride of 8 bytes in dimension 0; strides must be multiples of 16"
    ):
        require_aligned_strides("x", layout(np.zeros((4, 4), np.float16)))
    require_dtype("x", layout(array.astype(ml_dtypes.bfloat16)), "bfloat16")


def test_shared_memory_is_found_and_interleaving_is_not_sharing() -> None:
    base = np.zeros((8, 32), np.float16)
    left, right = placed("left", base[:, :16]), placed("right", base[:, 16:])
    assert not share_memory(left, right)
    assert share_memory(left, placed("row", base[3]))
    assert not share_memory(placed("a", base[:4]), placed("b", base[4:]))
    require_no_overlap([left], [right])
    with pytest.raises(ArgumentError, match="left shares memory with row"):
        require_no_overlap([left], [right, placed("row", base[3])])
    with pytest.raises(ArgumentError, match="row shares memory with left"):
        require_no_overlap([left, placed("row", base[3])], [])
