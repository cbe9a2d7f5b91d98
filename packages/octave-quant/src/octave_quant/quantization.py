"""K and V to slots and back."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from octave_quant import path
from octave_quant.arguments import truth
from octave_quant.formats import OctaveFormat
from octave_quant.rows import Rows, as_array, as_rows, like, widened

NONFINITE = ("zero", "raise")

LONGEST = 1.8e19
"""Euclidean length of a group up to which its sum of squares is an fp32 number, with room for rounding."""

_CHECKED_ROWS = 4096


def quantize(key: Any, value: Any, fmt: OctaveFormat, *, nonfinite: str = "zero") -> Any:
    """The slots uint8 ``[T, H, slot_bytes]`` of ``key`` and ``value`` ``[T, H, head_size]``, fp32, fp16 or bfloat16.

    key, value: NumPy arrays or CPU torch tensors of one shape and dtype; the result is of their kind.
    nonfinite: what becomes of a group (a K block, K, or V) with NaN or Inf. ``zero`` stores the scale 0, so that the
        group reads back as zeros; ``raise`` raises a ValueError that names the first such row, or the first one with a
        group longer than `LONGEST`.

    A group keeps its length while its root mean square is about 7e-5 to 3.9e4, which the fp16 scale holds. Larger ones
    read back shorter, and those longer than `LONGEST`, whose squares leave fp32, as zeros or something unrelated;
    smaller ones lose digits, and read back as zeros below 1.8e-8.

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
    path.active().decode(array, fmt, truth(rotated, "rotated"), key, value)
    return like(key, slots), like(value, slots)


def check_format(fmt: object, name: str = "fmt") -> None:
    """TypeError, by ``name``, for what is no `OctaveFormat`."""
    if not isinstance(fmt, OctaveFormat):
        raise TypeError(
            f"{name} is {reprlib.repr(fmt)}; it must be an OctaveFormat, such as OctaveFormat.from_cache_dtype gives"
        )


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
        for name, rows, group in (("key", keys, fmt.k_rotation_block), ("value", values, fmt.head_size)):
            _refuse_nonfinite(rows, name, group)
    return keys, values


def _refuse_nonfinite(rows: Rows, name: str, group: int) -> None:
    for first in range(0, rows.values.shape[0], _CHECKED_ROWS):
        part = widened(rows, slice(first, first + _CHECKED_ROWS))
        groups = part.reshape(*part.shape[:2], -1, group)
        with np.errstate(over="ignore", invalid="ignore"):
            good = np.all(np.einsum("thgd,thgd->thg", groups, groups) <= np.float32(LONGEST**2), axis=-1)
        if good.all():
            continue
        token, head = np.argwhere(~good)[0]
        place = f"at token {first + token}, head {head}"
        if np.isfinite(part[token, head]).all():
            longest = np.linalg.norm(groups[token, head].astype(np.float64), axis=-1).max()
            raise ValueError(f"{name} has a group of length {longest:.2g} {place}; the format holds up to {LONGEST:g}")
        raise ValueError(f'{name} has NaN or Inf {place}; nonfinite="zero" would store such groups as zeros')
