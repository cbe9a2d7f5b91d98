"""The check of scratch memory that a caller brings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rdna_kernels.errors import ArgumentError
from rdna_kernels.executors import Executor, require_reachable
from rdna_kernels.layout import ALIGNMENT, Layout, Placed, extent, require_dense_last, require_dtype, require_shape
from rdna_kernels.scratch import Scratch, ScratchNeed

_FIELDS = ("partial_acc", "partial_max", "partial_sum", "counters")
_NAMES = tuple(f"scratch {field}" for field in _FIELDS)


def check_scratch(executor: Executor, scratch: Sequence[Any], need: ScratchNeed) -> list[Placed]:
    """Where the caller's scratch lies; ArgumentError when it is not what is needed.

    `scratch` is (partial_acc fp32 [rows, head_size], partial_max fp32 [rows], partial_sum fp32 [rows], counters int32
    [counters]), each dense and with at least the rows and counters of `need`. Whether the arrays share memory, and
    whether the counters are zero, is left to the caller.
    """
    require_scratch(executor, scratch)
    layouts = tuple(map(executor.layout, scratch))
    _check_layouts(layouts, need)
    placed = [
        Placed(name, executor.address(array), layout, 4)
        for name, array, layout in zip(_NAMES, scratch, layouts, strict=True)
    ]
    for array, place in zip(scratch, placed, strict=True):
        if place.address % ALIGNMENT:
            raise ArgumentError(
                f"{place.name} begins at address {place.address:#x}; it must be a multiple of {ALIGNMENT} bytes"
            )
        if not executor.writable(array):
            raise ArgumentError(f"{place.name} is read-only; pass a writable array")
    return placed


def require_scratch(executor: Executor, scratch: Any) -> None:
    """Refuse scratch that is no sequence of four arrays which the executor reaches."""
    if not isinstance(scratch, Sequence) or len(scratch) != len(_NAMES):
        kind = type(scratch).__name__
        given = f"has {len(scratch)} arrays" if isinstance(scratch, Sequence) else f"is of type {kind}"
        raise ArgumentError(
            f"scratch {given}; it must be (partial_acc, partial_max, partial_sum, counters), as "
            "rdna_registry.make_scratch makes it"
        )
    require_reachable(executor, dict(zip(_NAMES, scratch, strict=True)))


def require_zero_counters(executor: Executor, counters: Any, need: ScratchNeed) -> None:
    """Refuse counters that are not zero, where the host can read them."""
    values = executor.host_values(counters)
    if values is not None and any(values[: need.counters].tolist()):
        raise ArgumentError("scratch counters are not all zero; zero them once, and after a launch that failed")


def cut_scratch(executor: Executor, scratch: Sequence[Any], need: ScratchNeed, placed: Sequence[Placed]) -> Scratch:
    """The part of checked scratch that a launch takes."""
    partial_acc, partial_max, partial_sum, counters = scratch
    return Scratch(
        executor.cut(partial_acc, (need.rows, need.head_size)),
        executor.cut(partial_max, (need.rows,)),
        executor.cut(partial_sum, (need.rows,)),
        executor.cut(counters, (need.counters,)),
        {field: place.address for field, place in zip(_FIELDS, placed, strict=True)},
    )


@lru_cache(maxsize=1024)
def _check_layouts(layouts: tuple[Layout, ...], need: ScratchNeed) -> None:
    for name, layout in zip(_NAMES, layouts, strict=True):
        shape, strides, _ = layout
        is_acc, is_counters = name == _NAMES[0], name == _NAMES[3]
        if is_acc:
            require_shape(name, layout, (None, need.head_size), "[rows, head_size]")
        else:
            require_shape(name, layout, (None,), "[counters]" if is_counters else "[rows]")
        minimum = need.counters if is_counters else need.rows
        if shape[0] < minimum:
            raise ArgumentError(f"{name} has {shape[0]} rows; this call needs at least {minimum}")
        require_dtype(name, layout, "int32" if is_counters else "float32")
        require_dense_last(name, layout, 4)
        if extent(layout, 4) != 4 * shape[0] * (need.head_size if is_acc else 1) or min(strides) < 0:
            raise ArgumentError(f"{name} is not dense (strides in bytes {strides}); pass a contiguous array")
