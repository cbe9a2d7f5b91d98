"""Codes of 3 and 4 bits to bytes and back, in the order that the kernels load them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octave_quant.arguments import integer
from octave_quant.rows import like, plain


def pack(codes: Any, bits: int) -> Any:
    """Packs ``codes`` ``[..., n]`` of ``bits`` 3 or 4 into uint8 ``[..., n * bits / 8]``.

    4 bit: 8 dimensions a dword; byte j holds code j in its low half and code j + 4 in its high half.
    3 bit: a plane of the codes' lower two bits, 16 dimensions a dword (dimension d in byte d % 4 at bit
    2 * ((d % 16) // 4)), then a plane of their upper bits, 32 dimensions a dword (byte d % 4, bit (d % 32) // 4).

    ValueError where n is no multiple of 8 (4 bit) or 32 (3 bit), or a code does not fit into the bits.
    """
    given = plain(codes, "codes")
    bits = _checked_bits(bits, given, "codes")
    n = given.shape[-1]
    _check_multiple(n, _dimensions_per_unit(bits), "codes", "dimensions")
    if not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"codes have dtype {given.dtype}; codes are integers")
    if given.size and (given.min() < 0 or given.max() >= 1 << bits):
        raise ValueError(f"codes are from {given.min()} to {given.max()}; {bits} bits hold 0 to {(1 << bits) - 1}")
    return like(packed_codes(given.astype(np.uint8), bits), codes)


def unpack(packed: Any, n: int, bits: int) -> Any:
    """The ``n`` codes, uint8 ``[..., n]``, of the bytes ``[..., n * bits / 8]`` of `pack`.

    ValueError for another number of bytes, or another dtype than uint8.
    """
    given = plain(packed, "packed")
    bits = _checked_bits(bits, given, "packed")
    n = integer(n, "n")
    _check_multiple(n, _dimensions_per_unit(bits), "n", "dimensions")
    if given.dtype != np.uint8:
        raise ValueError(f"packed has dtype {given.dtype}; packed codes are uint8")
    if given.shape[-1] * 8 != n * bits:
        raise ValueError(
            f"the last axis of packed has {given.shape[-1]} bytes; {n} codes of {bits} bits are {n * bits // 8}"
        )
    return like(unpacked_codes(given, bits), packed)


def packed_codes(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """`pack` of codes that are known to fit."""
    if bits == 4:
        return _merge(codes, 4)
    return np.concatenate((_merge(codes & np.uint8(3), 2), _merge(codes >> np.uint8(2), 1)), axis=-1)


def unpacked_codes(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """`unpack` of bytes that are known to be as many as they should."""
    if bits == 4:
        return _split(packed, 4)
    low_bytes = packed.shape[-1] * 2 // 3
    low, high = _split(packed[..., :low_bytes], 2), _split(packed[..., low_bytes:], 1)
    return low | (high << np.uint8(2))


def _merge(values: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Fields of ``width`` bits into dwords: field i of byte j is dimension 4 * i + j of the dword's."""
    fields = 8 // width
    *rows, n = values.shape
    grouped = values.reshape(*rows, n // (4 * fields), fields, 4)
    merged: NDArray[np.uint8] = np.bitwise_or.reduce(grouped << _shifts(width), axis=-2, dtype=np.uint8)
    return merged.reshape(*rows, n // fields)


def _split(packed: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The inverse of `_merge`."""
    *rows, length = packed.shape
    grouped = packed.reshape(*rows, length // 4, 1, 4)
    values = (grouped >> _shifts(width)) & np.uint8((1 << width) - 1)
    return values.reshape(*rows, length * (8 // width)).astype(np.uint8)


def _shifts(width: int) -> NDArray[np.uint8]:
    return np.arange(0, 8, width, dtype=np.uint8)[:, None]


def _dimensions_per_unit(bits: int) -> int:
    return 8 if bits == 4 else 32


def _checked_bits(bits: int, values: NDArray[np.generic], name: str) -> int:
    bits = integer(bits, "bits")
    if bits not in (3, 4):
        raise ValueError(f"bits is {bits}; the format has codes of 3 and 4 bits")
    if values.ndim == 0:
        raise ValueError(f"{name} is a single number; its last axis holds the dimensions of a head")
    return bits


def _check_multiple(length: int, multiple: int, name: str, unit: str) -> None:
    if length % multiple:
        raise ValueError(f"{name} has {length} {unit}; it must be a multiple of {multiple}")
