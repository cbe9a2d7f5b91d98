"""Array layouts as plain hashable tuples, and the checks on them that every operator shares.

A layout is `(shape, strides in bytes, dtype)`. It says nothing about where the array is, so it can key a cache of
prepared calls: arrays of one layout pass or fail these checks together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rdna_kernels.errors import ArgumentError

Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], Any]

_MOST_WORK: Any = 100_000  # steps of NumPy's exact search for an overlap, well below a second

ALIGNMENT = 16
"""Bytes: bases and strides of q, kv_cache and out must be multiples of it (kernels load 16 bytes a lane)."""


def dtype_name(dtype: Any) -> str:
    """The bare name of a NumPy or torch dtype: "float16", "bfloat16", "int32"."""
    return str(dtype).removeprefix("torch.")


def extent(layout: Layout, itemsize: int) -> int:
    """Bytes from the first element of a layout to the end of its last one; 0 for an empty array.

    The strides must not be negative.
    """
    shape, strides, _ = layout
    if 0 in shape:
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + itemsize


def require_shape(name: str, layout: Layout, wanted: Sequence[int | None], meaning: str) -> None:
    """Refuse a layout whose shape is not `wanted` (None: any size); `meaning` names the dimensions."""
    shape = layout[0]
    fits = len(shape) == len(wanted) and all(
        want is None or size == want for size, want in zip(shape, wanted, strict=True)
    )
    if not fits:
        sizes = ", ".join("any" if want is None else str(want) for want in wanted)
        raise ArgumentError(f"{name} has shape {tuple(shape)}; it must be {meaning} = [{sizes}]")


def require_dtype(name: str, layout: Layout, wanted: str) -> None:
    """Refuse a layout whose dtype is not `wanted`, or is of the other byte order."""
    dtype = layout[2]
    if not getattr(dtype, "isnative", True):
        raise ArgumentError(f"{name} has dtype {dtype}, of the other byte order; convert it to native {wanted}")
    if dtype_name(dtype) != wanted:
        raise ArgumentError(f"{name} has dtype {dtype_name(dtype)}; it must be {wanted}")


def require_dense_last(name: str, layout: Layout, itemsize: int) -> None:
    """Refuse a last dimension whose elements are not next to each other."""
    shape, strides, _ = layout
    if 0 not in shape and shape[-1] > 1 and strides[-1] != itemsize:
        raise ArgumentError(
            f"{name} has a last dimension with a stride of {strides[-1]} bytes; its elements must be dense ({itemsize} "
            "bytes apart): pass a contiguous copy"
        )


def require_aligned_strides(name: str, layout: Layout, alignment: int = ALIGNMENT) -> None:
    """Refuse strides (the last dimension's left out) that are not multiples of `alignment` bytes."""
    shape, strides, _ = layout
    if 0 in shape:
        return
    for axis, (size, stride) in enumerate(zip(shape[:-1], strides[:-1], strict=True)):
        if size > 1 and stride % alignment:
            raise ArgumentError(
                f"{name} has a stride of {stride} bytes in dimension {axis}; strides must be multiples of {alignment} "
                "bytes"
            )


def require_apart(name: str, layout: Layout, itemsize: int) -> None:
    """Refuse strides by which two indices may meet in one byte (stride 0, broadcast or sliding views) or run backwards.

    Sorted by stride, each dimension must step past everything that the smaller ones reach; any order of dimensions
    passes, and so do gaps.
    """
    shape, strides, _ = layout
    if 0 in shape:
        return
    reach = itemsize
    for stride, size, axis in sorted((strides[axis], shape[axis], axis) for axis in range(len(shape))):
        if size == 1:
            continue
        if stride < 0:
            raise ArgumentError(
                f"{name} has a negative stride ({stride} bytes) in dimension {axis}; strides must be positive: pass a "
                "copy"
            )
        if stride < reach:
            raise ArgumentError(
                f"{name} has overlapping strides: dimension {axis} (size {size}) steps {stride} bytes, but the "
                f"dimensions inside it reach {reach} bytes (shape {tuple(shape)}, strides in bytes {tuple(strides)}): "
                "pass a copy"
            )
        reach += (size - 1) * stride


def element_strides(layout: Layout, itemsize: int) -> tuple[int, ...]:
    """Strides in elements; 0 for a dimension of size 1, whose stride is never used and may be anything."""
    shape, strides, _ = layout
    return tuple(stride // itemsize if size > 1 else 0 for size, stride in zip(shape, strides, strict=True))


class Placed(NamedTuple):
    """An array as its place in memory: what it is called, its first byte's address, layout and bytes an element."""

    name: str
    address: int
    layout: Layout
    itemsize: int

    def array(self) -> np.ndarray[Any, Any]:
        """A stand-in at the same addresses, for NumPy to compare; its memory is never touched (it may be a GPU's)."""
        shape, strides, _ = self.layout
        described = {
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{self.itemsize}",
            "data": (self.address, True),
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=described))


def share_memory(first: Placed, second: Placed) -> bool:
    """Whether two arrays have a byte in common.

    Views that interleave without touching are apart; where that cannot be decided quickly the answer is True.
    """
    first_end = first.address + extent(first.layout, first.itemsize)
    second_end = second.address + extent(second.layout, second.itemsize)
    if first.address >= second_end or second.address >= first_end:
        return False
    try:
        return bool(np.shares_memory(first.array(), second.array(), max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True


Span: TypeAlias = tuple[int, int]
"""The addresses from an array's first byte to past its last one."""


def spans_apart(spans: Iterable[Span]) -> bool:
    """Whether no two spans have an address in common; then no two of their arrays share memory."""
    reached = 0
    for start, end in sorted(spans):
        if start < reached and start < end:
            return False
        reached = max(reached, end)
    return True


def require_no_overlap(written: Iterable[Placed], read: Iterable[Placed]) -> None:
    """Refuse arrays to be written that share memory with another one, written or read."""
    others = list(read)
    for array in written:
        for other in others:
            if share_memory(array, other):
                raise ArgumentError(f"{array.name} shares memory with {other.name}; what a kernel writes must be apart")
        others.append(array)
