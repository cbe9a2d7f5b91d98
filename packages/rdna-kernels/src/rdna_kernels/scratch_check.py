"""The check of scratch memory that a caller brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdna_kernels.errors import ArgumentError
from rdna_kernels.executors import Executor, require_reachable
from rdna_kernels.layout import ALIGNMENT, Placed, require_dense_last, require_dtype, require_no_overlap, require_shape
from rdna_kernels.scratch import Scratch, ScratchNeed


def check_scratch(executor: Executor, scratch: Sequence[Any], need: ScratchNeed, others: Sequence[Placed]) -> Scratch:
    """The caller's scratch as a launch takes it; ArgumentError when it does not hold what is needed.

    `scratch` is (partial_acc fp32 [rows, head_size], partial_max fp32 [rows], partial_sum fp32 [rows], counters int32
    [counters]), each dense and with at least the rows and counters of `need`; counters must be zero (checked where the
    host can read them). It may share no memory with itself or with `others`, the call's arrays.
    """
    if len(scratch) != 4:
        raise ArgumentError(
            f"scratch has {len(scratch)} arrays; it must be (partial_acc, partial_max, partial_sum, counters), as "
            "rdna_registry.make_scratch makes it"
        )
    names = ("scratch partial_acc", "scratch partial_max", "scratch partial_sum", "scratch counters")
    arrays = dict(zip(names, scratch, strict=True))
    require_reachable(executor, arrays)
    minimum = dict(zip(names, (need.rows, need.rows, need.rows, need.counters), strict=True))
    placed = []
    for name, array in arrays.items():
        layout = executor.layout(array)
        width = need.head_size if name == names[0] else None
        require_shape(
            name,
            layout,
            (None,) if width is None else (None, width),
            "[rows]" if width is None else "[rows, head_size]",
        )
        if layout[0][0] < minimum[name]:
            raise ArgumentError(f"{name} has {layout[0][0]} rows; this call needs at least {minimum[name]}")
        require_dtype(name, layout, "int32" if name == names[3] else "float32")
        dense = 4 if width is None else 4 * width
        if layout[0][0] > 1 and layout[1][0] != dense:
            raise ArgumentError(f"{name} is not dense (strides in bytes {layout[1]}); pass a contiguous array")
        require_dense_last(name, layout, 4)
        address = executor.address(array)
        if address % ALIGNMENT:
            raise ArgumentError(f"{name} begins at address {address:#x}; it must be a multiple of {ALIGNMENT} bytes")
        if not executor.writable(array):
            raise ArgumentError(f"{name} is read-only; pass a writable array")
        placed.append(Placed(name, address, layout, 4))
    require_no_overlap(placed, others)
    partial_acc, partial_max, partial_sum, counters = scratch
    values = executor.host_values(counters)
    if values is not None and values[: need.counters].any():
        raise ArgumentError("scratch counters are not all zero; zero them once, and after a launch that failed")
    return Scratch(
        partial_acc[: need.rows], partial_max[: need.rows], partial_sum[: need.rows], counters[: need.counters]
    )
