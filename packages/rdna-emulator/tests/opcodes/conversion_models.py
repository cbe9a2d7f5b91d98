"""NumPy models of the conversions."""

from __future__ import annotations

import numpy as np

from opcodes.cases import Array, Case, Model, table


def _to_integer(kind: type[np.integer]) -> Model:
    info = np.iinfo(kind)

    def model(x: Array) -> Array:
        value = np.trunc(x.astype(np.float64))
        bounded = np.clip(np.where(np.isnan(value), 0, value), float(info.min), float(info.max))
        return bounded.astype(np.int64).astype(kind)

    return model


def _normalized(scale: int, lowest: int) -> Model:
    def model(x: Array) -> Array:
        value = np.where(np.isnan(x), np.float32(0), np.clip(x.astype(np.float32), lowest, 1))
        return np.asarray(np.rint(value.astype(np.float32) * np.float32(scale)).astype(np.int64))

    return model


def _pack(low: Array, high: Array) -> Array:
    return (low.astype(np.int64) & 0xFFFF | (high.astype(np.int64) & 0xFFFF) << 16).astype(np.uint32)


def _both(model: Model) -> Model:
    return lambda a, b: _pack(model(a), model(b))


def toward_zero(x: Array) -> Array:
    """The bits of the f16 next to ``x`` in the direction of zero."""
    near = x.astype(np.float16)
    over = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
    return near.view(np.uint16) - over.astype(np.uint16)


def _pk_u8(x: Array, position: Array, into: Array) -> Array:
    value = np.minimum(_to_integer(np.uint32)(x).astype(np.int64), 255)
    shift = (position.astype(np.int64) & 3) * 8
    return np.asarray((into.astype(np.int64) & ~(255 << shift)) | value << shift)


def _sat_pk_u8(x: Array) -> Array:
    low, high = x.astype(np.uint16).view(np.int16), (x >> 16).astype(np.uint16).view(np.int16)
    return np.clip(low.astype(np.int64), 0, 255) | np.clip(high.astype(np.int64), 0, 255) << 8


def _clip16(x: Array) -> Array:
    return np.clip(x.astype(np.int64), -32768, 32767)


CASES: tuple[Case, ...] = table(
    ("v_cvt_f32_i32", "f32 i32", lambda a: a.astype(np.float32)),
    ("v_cvt_f32_u32", "f32 u32", lambda a: a.astype(np.float32)),
    ("v_cvt_i32_f32", "i32 f32", _to_integer(np.int32)),
    ("v_cvt_u32_f32", "u32 f32", _to_integer(np.uint32)),
    ("v_cvt_nearest_i32_f32", "i32 f32", lambda a: _to_integer(np.int32)(np.floor(a + np.float32(0.5)))),
    ("v_cvt_floor_i32_f32", "i32 f32", lambda a: _to_integer(np.int32)(np.floor(a))),
    ("v_cvt_f16_f32", "f16 f32", lambda a: a.astype(np.float16)),
    ("v_cvt_f32_f16", "f32 f16", lambda a: a.astype(np.float32)),
    ("v_cvt_f32_f64", "f32 f64", lambda a: a.astype(np.float32)),
    ("v_cvt_f64_f32", "f64 f32", lambda a: a.astype(np.float64)),
    ("v_cvt_f64_i32", "f64 i32", lambda a: a.astype(np.float64)),
    ("v_cvt_f64_u32", "f64 u32", lambda a: a.astype(np.float64)),
    ("v_cvt_i32_f64", "i32 f64", _to_integer(np.int32)),
    ("v_cvt_u32_f64", "u32 f64", _to_integer(np.uint32)),
    ("v_cvt_f32_ubyte0", "f32 u32", lambda a: (a & 255).astype(np.float32)),
    ("v_cvt_f32_ubyte1", "f32 u32", lambda a: (a >> 8 & 255).astype(np.float32)),
    ("v_cvt_f32_ubyte2", "f32 u32", lambda a: (a >> 16 & 255).astype(np.float32)),
    ("v_cvt_f32_ubyte3", "f32 u32", lambda a: (a >> 24).astype(np.float32)),
    ("v_cvt_off_f32_i4", "f32 u32", lambda a: (((a.astype(np.int64) & 15) ^ 8) - 8) / 16),
    ("v_cvt_f16_u16", "f16 u16", lambda a: a.astype(np.float64)),
    ("v_cvt_f16_i16", "f16 i16", lambda a: a.astype(np.float64)),
    ("v_cvt_u16_f16", "u16 f16", _to_integer(np.uint16)),
    ("v_cvt_i16_f16", "i16 f16", _to_integer(np.int16)),
    ("v_cvt_i32_i16", "i32 i16", lambda a: a.astype(np.int32)),
    ("v_cvt_u32_u16", "u32 u16", lambda a: a.astype(np.uint32)),
    ("v_cvt_norm_i16_f16", "i16 f16", _normalized(32767, -1)),
    ("v_cvt_norm_u16_f16", "u16 f16", _normalized(65535, 0)),
    ("v_cvt_pk_norm_i16_f16", "u32 f16 f16", _both(_normalized(32767, -1))),
    ("v_cvt_pk_norm_u16_f16", "u32 f16 f16", _both(_normalized(65535, 0))),
    ("v_cvt_pk_norm_i16_f32", "u32 f32 f32", _both(_normalized(32767, -1))),
    ("v_cvt_pk_norm_u16_f32", "u32 f32 f32", _both(_normalized(65535, 0))),
    ("v_cvt_pk_rtz_f16_f32", "2f16 f32 f32", _both(toward_zero)),
    ("v_cvt_pk_i16_f32", "u32 f32 f32", _both(_to_integer(np.int16))),
    ("v_cvt_pk_u16_f32", "u32 f32 f32", _both(_to_integer(np.uint16))),
    ("v_cvt_pk_u16_u32", "u32 u32 u32", _both(lambda a: np.minimum(a, 65535))),
    ("v_cvt_pk_i16_i32", "u32 i32 i32", _both(_clip16)),
    ("v_cvt_pk_u8_f32", "u32 f32 u32 u32", _pk_u8),
    ("v_sat_pk_u8_i16", "u16 u32", _sat_pk_u8),
    ("v_pack_b32_f16", "u32 u16 u16", _pack),
)
