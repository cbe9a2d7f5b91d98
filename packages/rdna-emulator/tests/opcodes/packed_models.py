"""NumPy models of the packed operations, on arrays [n, 2] of halves, lowest first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opcodes.cases import Array
from opcodes.float_models import fma, maximum, minimum

_I = np.int64


def _saturated(operation: Callable[..., Array], kind: type[np.integer]) -> Callable[..., Array]:
    info = np.iinfo(kind)
    return lambda *sources: np.clip(operation(*(x.astype(_I) for x in sources)), info.min, info.max).astype(kind)


def _each(model: Callable[..., Array]) -> Callable[..., Array]:
    """A model of one dimension, on both halves."""
    return lambda *sources: model(*(np.ascontiguousarray(x).reshape(-1) for x in sources)).reshape(-1, 2)


# Name: the halves' type, the number of sources, the model.
PACKED: dict[str, tuple[str, int, Callable[..., Array]]] = {
    "v_pk_mad_i16": ("i16", 3, lambda a, b, c: a * b + c),
    "v_pk_mad_u16": ("u16", 3, lambda a, b, c: a * b + c),
    "v_pk_mul_lo_u16": ("u16", 2, lambda a, b: a * b),
    "v_pk_add_i16": ("i16", 2, lambda a, b: a + b),
    "v_pk_sub_i16": ("i16", 2, lambda a, b: a - b),
    "v_pk_add_u16": ("u16", 2, lambda a, b: a + b),
    "v_pk_sub_u16": ("u16", 2, lambda a, b: a - b),
    "v_pk_lshlrev_b16": ("u16", 2, lambda a, b: b << (a & np.uint16(15))),
    "v_pk_lshrrev_b16": ("u16", 2, lambda a, b: b >> (a & np.uint16(15))),
    "v_pk_ashrrev_i16": ("i16", 2, lambda a, b: b >> (a & np.int16(15))),
    "v_pk_min_i16": ("i16", 2, np.minimum),
    "v_pk_max_i16": ("i16", 2, np.maximum),
    "v_pk_min_u16": ("u16", 2, np.minimum),
    "v_pk_max_u16": ("u16", 2, np.maximum),
    "v_pk_add_f16": ("f16", 2, lambda a, b: a + b),
    "v_pk_mul_f16": ("f16", 2, lambda a, b: a * b),
    "v_pk_min_f16": ("f16", 2, _each(minimum)),
    "v_pk_max_f16": ("f16", 2, _each(maximum)),
    "v_pk_fma_f16": ("f16", 3, _each(fma)),
}
CLAMPED: dict[str, tuple[str, int, Callable[..., Array]]] = {
    "v_pk_mad_i16": ("i16", 3, _saturated(lambda a, b, c: a * b + c, np.int16)),
    "v_pk_mad_u16": ("u16", 3, _saturated(lambda a, b, c: a * b + c, np.uint16)),
    "v_pk_add_i16": ("i16", 2, _saturated(lambda a, b: a + b, np.int16)),
    "v_pk_sub_i16": ("i16", 2, _saturated(lambda a, b: a - b, np.int16)),
    "v_pk_add_u16": ("u16", 2, _saturated(lambda a, b: a + b, np.uint16)),
    "v_pk_sub_u16": ("u16", 2, _saturated(lambda a, b: a - b, np.uint16)),
    "v_pk_add_f16": ("f16", 2, lambda a, b: np.where(np.isnan(a + b), 0, np.clip(a + b, 0, 1)).astype(np.float16)),
}


def brain_to_f32(bits: Array) -> Array:
    """bfloat16 patterns as f32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def dot(a: Array, b: Array, c: Array) -> Array:
    """Sums over the last axis of f64 products, added to ``c`` and rounded to f32 once."""
    with np.errstate(all="ignore"):
        return np.asarray(
            ((a.astype(np.float64) * b.astype(np.float64)).sum(axis=-1) + c.astype(np.float64)).astype(np.float32)
        )


def fields(x: Array, width: int, signed: bool) -> Array:
    """[n, 32 / width] integers of ``width`` bits in 32-bit words, lowest first."""
    parts = (x[:, None] >> np.arange(0, 32, width, dtype=np.uint32)).astype(_I) & ((1 << width) - 1)
    sign = 1 << (width - 1)
    return (parts ^ sign) - sign if signed else parts
