"""K and V to slots and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from octave_quant import path
from octave_quant.formats import OctaveFormat
from octave_quant.rows import Rows, as_array, as_rows, like, widened

NONFINITE = ("zero", "raise")
_CHECKED_ROWS = 4096


def quantize(key: Any, value: Any, fmt: OctaveFormat, *, nonfinite: str = "zero") -> Any:
    """The slots uint8 ``[T, H, slot_bytes]`` of ``key`` and ``value`` ``[T, H, head_size]``, fp32, fp16 or bfloat16.

    key, value: NumPy arrays or CPU torch tensors of one shape and dtype; the result is of their kind.
    nonfinite: what becomes of a group (a K block, K, or V) with NaN or Inf. ``zero`` stores the scale 0, so that the
        group reads back as zeros; ``raise`` raises a ValueError that names the first such row.

    ValueError for other shapes, TypeError for other dtypes and kinds.
    """
    keys, values = checked_rows(key, value, fmt, nonfinite)
    slots = np.empty((*keys.values.shape[:2], fmt.slot_bytes), np.uint8)
    path.active().encode(keys, values, fmt, slots)
    return like(slots, key, value)


def dequantize(slots: Any, fmt: OctaveFormat, rotated: bool = False) -> tuple[Any, Any]:
    """K and V, fp32 ``[T, H, head_size]`` each, of ``slots`` uint8 ``[T, H, slot_bytes]``; of the kind of ``slots``.

    rotated: leave them in the rotated basis, in which attention may as well be computed if Q is rotated too.
    ValueError for other shapes, TypeError for other dtypes and kinds.
    """
    check_format(fmt)
    array = as_array(slots, "slots")
    if array.dtype != np.uint8:
        raise TypeError(f"slots have dtype {array.dtype}; slots are uint8")
    if array.ndim != 3 or array.shape[-1] != fmt.slot_bytes:
        raise ValueError(f"slots have shape {array.shape}; it must be [T, H, {fmt.slot_bytes}] for this format")
    if array.strides[-1] != 1:
        array = np.ascontiguousarray(array)
    shape = (*array.shape[:2], fmt.head_size)
    key, value = np.empty(shape, np.float32), np.empty(shape, np.float32)
    path.active().decode(array, fmt, bool(rotated), key, value)
    return like(key, slots), like(value, slots)


def check_format(fmt: object) -> None:
    """TypeError for what is no `OctaveFormat`."""
    if not isinstance(fmt, OctaveFormat):
        raise TypeError(f"fmt is {fmt!r}; it must be an OctaveFormat, such as OctaveFormat.from_cache_dtype gives")


def checked_rows(key: Any, value: Any, fmt: OctaveFormat, nonfinite: str) -> tuple[Rows, Rows]:
    """The arguments of `quantize` and of `store`, or the error that says what is wrong with them."""
    check_format(fmt)
    if nonfinite not in NONFINITE:
        raise ValueError(f"nonfinite is {nonfinite!r}; it must be one of {', '.join(NONFINITE)}")
    keys, values = as_rows(key, "key"), as_rows(value, "value")
    for name, rows in (("key", keys), ("value", values)):
        if rows.values.ndim != 3 or rows.values.shape[-1] != fmt.head_size:
            raise ValueError(
                f"{name} has shape {rows.values.shape}; it must be [T, H, {fmt.head_size}] for this format"
            )
    if keys.values.shape != values.values.shape:
        raise ValueError(f"key has shape {keys.values.shape} and value {values.values.shape}; they must be the same")
    if keys.element != values.element:
        raise TypeError(f"key has dtype {keys.element} and value {values.element}; they must be the same")
    if nonfinite == "raise":
        for name, rows in (("key", keys), ("value", values)):
            _refuse_nonfinite(rows, name)
    return keys, values


def _refuse_nonfinite(rows: Rows, name: str) -> None:
    for first in range(0, rows.values.shape[0], _CHECKED_ROWS):
        finite = np.all(np.isfinite(widened(rows, slice(first, first + _CHECKED_ROWS))), axis=-1)
        if not finite.all():
            token, head = np.argwhere(~finite)[0]
            raise ValueError(
                f"{name} has NaN or Inf at token {first + token}, head {head}; "
                'nonfinite="zero" would store such groups as zeros'
            )
