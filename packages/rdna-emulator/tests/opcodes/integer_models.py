"""NumPy models of the integer and bit operations."""

from __future__ import annotations

import numpy as np

from opcodes.cases import Array, Case, table

_U64 = np.uint64
_I64 = np.int64


def _wide(x: Array) -> Array:
    return x.astype(_I64)


def _low32(x: Array) -> Array:
    return (x.astype(_I64) & 0xFFFFFFFF).astype(np.uint32)


def _shift(x: Array, bits: int) -> Array:
    return np.asarray(x & x.dtype.type(bits - 1))


def _s24(x: Array) -> Array:
    return ((_wide(x) & 0xFFFFFF) ^ 0x800000) - 0x800000


def _u24(x: Array) -> Array:
    return _wide(x) & 0xFFFFFF


def _clip(x: Array, kind: type[np.integer]) -> Array:
    info = np.iinfo(kind)
    return np.clip(x, info.min, info.max)


def _bits(x: Array) -> Array:
    """[n, 32] bits of 32-bit words, lowest first."""
    return (x.astype(np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & 1


def _bytes(x: Array) -> Array:
    return (x.astype(np.uint32)[:, None] >> np.array([0, 8, 16, 24], np.uint32) & 0xFF).astype(_I64)


def _word(parts: Array) -> Array:
    return np.asarray((parts.astype(np.uint32) << np.array([0, 8, 16, 24], np.uint32)).sum(axis=1, dtype=np.uint32))


def _clz(x: Array) -> Array:
    bits = _bits(x)[:, ::-1]
    return np.where(bits.any(axis=1), bits.argmax(axis=1), -1)


def _ctz(x: Array) -> Array:
    bits = _bits(x)
    return np.where(bits.any(axis=1), bits.argmax(axis=1), -1)


def _cls(x: Array) -> Array:
    bits = _bits(x.view(np.uint32))[:, ::-1]
    differs = bits != bits[:, :1]
    return np.where(differs.any(axis=1), differs.argmax(axis=1), -1)


def _bfrev(x: Array) -> Array:
    return np.asarray(
        (_bits(x)[:, ::-1].astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    )


def _popcount(x: Array) -> Array:
    return np.asarray(_bits(x).sum(axis=1))


def _bfe_u32(x: Array, offset: Array, width: Array) -> Array:
    mask = (1 << (_wide(width) & 31)) - 1
    return np.asarray((_wide(x) >> (_wide(offset) & 31)) & mask)


def _bfe_i32(x: Array, offset: Array, width: Array) -> Array:
    n = _wide(width) & 31
    field = (_wide(x) >> (_wide(offset) & 31)) & ((1 << n) - 1)
    sign = np.where(n > 0, 1 << np.maximum(n - 1, 0), 0)
    return np.asarray((field ^ sign) - sign)


def _perm(high: Array, low: Array, selector: Array) -> Array:
    data = np.concatenate([_bytes(low), _bytes(high)], axis=1)
    chosen = _bytes(selector)
    plain = np.take_along_axis(data, chosen & 7, axis=1)
    sign_of = np.take_along_axis(data, np.clip((chosen - 8) * 2 + 1, 0, 7), axis=1)
    special = np.where(chosen == 12, 0, np.where(chosen > 12, 255, np.where(sign_of & 0x80, 255, 0)))
    return _word(np.where(chosen < 8, plain, special))


def _alignbit(high: Array, low: Array, n: Array) -> Array:
    both = high.astype(_U64) << _U64(32) | low.astype(_U64)
    return (both >> (n & 31).astype(_U64)) & _U64(0xFFFFFFFF)


def _sad_u8(a: Array, b: Array) -> Array:
    return np.asarray(np.abs(_bytes(a) - _bytes(b)).sum(axis=1))


def _msad_u8(a: Array, b: Array) -> Array:
    return np.asarray(np.where(_bytes(b) == 0, 0, np.abs(_bytes(a) - _bytes(b))).sum(axis=1))


def _sad_u16(a: Array, b: Array) -> Array:
    return np.asarray(np.abs(_wide(a & 0xFFFF) - _wide(b & 0xFFFF)) + np.abs(_wide(a >> 16) - _wide(b >> 16)))


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(np.sort(np.stack([a, b, c]), axis=0)[1])


def _lane(x: Array) -> Array:
    return np.arange(len(x)) % 32


def _mbcnt_lo(mask: Array, base: Array) -> Array:
    below = (_U64(1) << _lane(mask).astype(_U64)) - _U64(1)
    return _popcount((mask.astype(_U64) & below).astype(np.uint32)) + _wide(base)


INTEGER_32 = table(
    ("v_mov_b32", "u32 u32", lambda a: a),
    ("v_not_b32", "u32 u32", lambda a: ~a),
    ("v_bfrev_b32", "u32 u32", _bfrev),
    ("v_clz_i32_u32", "i32 u32", _clz),
    ("v_ctz_i32_b32", "i32 u32", _ctz),
    ("v_cls_i32", "i32 i32", _cls),
    ("v_and_b32", "u32 u32 u32", lambda a, b: a & b),
    ("v_or_b32", "u32 u32 u32", lambda a, b: a | b),
    ("v_xor_b32", "u32 u32 u32", lambda a, b: a ^ b),
    ("v_xnor_b32", "u32 u32 u32", lambda a, b: ~(a ^ b)),
    ("v_lshlrev_b32", "u32 u32 u32", lambda a, b: b << _shift(a, 32)),
    ("v_lshrrev_b32", "u32 u32 u32", lambda a, b: b >> _shift(a, 32)),
    ("v_ashrrev_i32", "i32 i32 i32", lambda a, b: b >> _shift(a, 32)),
    ("v_add_nc_u32", "u32 u32 u32", lambda a, b: a + b),
    ("v_sub_nc_u32", "u32 u32 u32", lambda a, b: a - b),
    ("v_subrev_nc_u32", "u32 u32 u32", lambda a, b: b - a),
    ("v_add_nc_i32", "u32 u32 u32", lambda a, b: a + b),
    ("v_sub_nc_i32", "u32 u32 u32", lambda a, b: a - b),
    ("v_min_i32", "i32 i32 i32", np.minimum),
    ("v_max_i32", "i32 i32 i32", np.maximum),
    ("v_min_u32", "u32 u32 u32", np.minimum),
    ("v_max_u32", "u32 u32 u32", np.maximum),
    ("v_min3_i32", "i32 i32 i32 i32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    ("v_max3_i32", "i32 i32 i32 i32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("v_med3_i32", "i32 i32 i32 i32", _median),
    ("v_min3_u32", "u32 u32 u32 u32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    ("v_max3_u32", "u32 u32 u32 u32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("v_med3_u32", "u32 u32 u32 u32", _median),
    ("v_maxmin_i32", "i32 i32 i32 i32", lambda a, b, c: np.minimum(np.maximum(a, b), c)),
    ("v_minmax_i32", "i32 i32 i32 i32", lambda a, b, c: np.maximum(np.minimum(a, b), c)),
    ("v_maxmin_u32", "u32 u32 u32 u32", lambda a, b, c: np.minimum(np.maximum(a, b), c)),
    ("v_minmax_u32", "u32 u32 u32 u32", lambda a, b, c: np.maximum(np.minimum(a, b), c)),
    ("v_mul_lo_u32", "u32 u32 u32", lambda a, b: a * b),
    ("v_mul_hi_u32", "u32 u32 u32", lambda a, b: a.astype(_U64) * b.astype(_U64) >> _U64(32)),
    ("v_mul_hi_i32", "i32 i32 i32", lambda a, b: _wide(a) * _wide(b) >> 32),
    ("v_mul_i32_i24", "u32 i32 i32", lambda a, b: _low32(_s24(a) * _s24(b))),
    ("v_mul_hi_i32_i24", "i32 i32 i32", lambda a, b: _s24(a) * _s24(b) >> 32),
    ("v_mul_u32_u24", "u32 u32 u32", lambda a, b: _low32(_u24(a) * _u24(b))),
    ("v_mul_hi_u32_u24", "u32 u32 u32", lambda a, b: _u24(a) * _u24(b) >> 32),
    ("v_mad_i32_i24", "u32 i32 i32 u32", lambda a, b, c: _low32(_s24(a) * _s24(b) + _wide(c))),
    ("v_mad_u32_u24", "u32 u32 u32 u32", lambda a, b, c: _low32(_u24(a) * _u24(b) + _wide(c))),
    ("v_mad_u32_u16", "u32 u16 u16 u32", lambda a, b, c: _low32(_wide(a) * _wide(b) + _wide(c))),
    ("v_mad_i32_i16", "u32 i16 i16 u32", lambda a, b, c: _low32(_wide(a) * _wide(b) + _wide(c))),
    ("v_bfe_u32", "u32 u32 u32 u32", _bfe_u32),
    ("v_bfe_i32", "i32 i32 u32 u32", _bfe_i32),
    ("v_bfi_b32", "u32 u32 u32 u32", lambda a, b, c: (a & b) | (~a & c)),
    ("v_bfm_b32", "u32 u32 u32", lambda a, b: _low32(((1 << (_wide(a) & 31)) - 1) << (_wide(b) & 31))),
    ("v_alignbit_b32", "u32 u32 u32 u32", _alignbit),
    ("v_alignbyte_b32", "u32 u32 u32 u32", lambda a, b, c: _alignbit(a, b, (c & 3) * 8)),
    ("v_perm_b32", "u32 u32 u32 u32", _perm),
    ("v_lshl_add_u32", "u32 u32 u32 u32", lambda a, b, c: (a << _shift(b, 32)) + c),
    ("v_add_lshl_u32", "u32 u32 u32 u32", lambda a, b, c: (a + b) << _shift(c, 32)),
    ("v_lshl_or_b32", "u32 u32 u32 u32", lambda a, b, c: (a << _shift(b, 32)) | c),
    ("v_add3_u32", "u32 u32 u32 u32", lambda a, b, c: a + b + c),
    ("v_and_or_b32", "u32 u32 u32 u32", lambda a, b, c: (a & b) | c),
    ("v_or3_b32", "u32 u32 u32 u32", lambda a, b, c: a | b | c),
    ("v_xor3_b32", "u32 u32 u32 u32", lambda a, b, c: a ^ b ^ c),
    ("v_xad_u32", "u32 u32 u32 u32", lambda a, b, c: (a ^ b) + c),
    ("v_bcnt_u32_b32", "u32 u32 u32", lambda a, b: _low32(_popcount(a) + _wide(b))),
    ("v_mbcnt_lo_u32_b32", "u32 u32 u32", lambda a, b: _low32(_mbcnt_lo(a, b))),
    ("v_mbcnt_hi_u32_b32", "u32 u32 u32", lambda a, b: b),
    ("v_lerp_u8", "u32 u32 u32 u32", lambda a, b, c: _word((_bytes(a) + _bytes(b) + (_bytes(c) & 1)) >> 1)),
    ("v_sad_u8", "u32 u32 u32 u32", lambda a, b, c: _low32(_sad_u8(a, b) + _wide(c))),
    ("v_sad_hi_u8", "u32 u32 u32 u32", lambda a, b, c: _low32((_sad_u8(a, b) << 16) + _wide(c))),
    ("v_sad_u16", "u32 u32 u32 u32", lambda a, b, c: _low32(_sad_u16(a, b) + _wide(c))),
    ("v_sad_u32", "u32 u32 u32 u32", lambda a, b, c: _low32(np.abs(_wide(a) - _wide(b)) + _wide(c))),
    ("v_msad_u8", "u32 u32 u32 u32", lambda a, b, c: _low32(_msad_u8(a, b) + _wide(c))),
)

INTEGER_16 = table(
    ("v_mov_b16", "u16 u16", lambda a: a),
    ("v_not_b16", "u16 u16", lambda a: ~a),
    ("v_and_b16", "u16 u16 u16", lambda a, b: a & b),
    ("v_or_b16", "u16 u16 u16", lambda a, b: a | b),
    ("v_xor_b16", "u16 u16 u16", lambda a, b: a ^ b),
    ("v_lshlrev_b16", "u16 u16 u16", lambda a, b: b << _shift(a, 16)),
    ("v_lshrrev_b16", "u16 u16 u16", lambda a, b: b >> _shift(a, 16)),
    ("v_ashrrev_i16", "i16 i16 i16", lambda a, b: b >> _shift(a, 16)),
    ("v_add_nc_u16", "u16 u16 u16", lambda a, b: a + b),
    ("v_sub_nc_u16", "u16 u16 u16", lambda a, b: a - b),
    ("v_add_nc_i16", "u16 u16 u16", lambda a, b: a + b),
    ("v_sub_nc_i16", "u16 u16 u16", lambda a, b: a - b),
    ("v_mul_lo_u16", "u16 u16 u16", lambda a, b: a * b),
    ("v_mad_u16", "u16 u16 u16 u16", lambda a, b, c: a * b + c),
    ("v_mad_i16", "u16 u16 u16 u16", lambda a, b, c: a * b + c),
    ("v_min_u16", "u16 u16 u16", np.minimum),
    ("v_max_u16", "u16 u16 u16", np.maximum),
    ("v_min_i16", "i16 i16 i16", np.minimum),
    ("v_max_i16", "i16 i16 i16", np.maximum),
    ("v_min3_u16", "u16 u16 u16 u16", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    ("v_max3_u16", "u16 u16 u16 u16", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("v_med3_u16", "u16 u16 u16 u16", _median),
    ("v_min3_i16", "i16 i16 i16 i16", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    ("v_max3_i16", "i16 i16 i16 i16", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("v_med3_i16", "i16 i16 i16 i16", _median),
)


def _windows(x: Array) -> Array:
    """[n, 4, 4]: the four bytes from byte 0, 1, 2 and 3 of 64-bit words on."""
    data = (x[:, None] >> (np.arange(8, dtype=_U64) * _U64(8)) & _U64(255)).astype(_I64)
    return np.stack([data[:, k : k + 4] for k in range(4)], axis=1)


def _four_sums(window: Array, reference: Array, addends: Array, masked: bool) -> Array:
    bytes_of = _bytes(reference)[:, None, :]
    distances = np.abs(_windows(window) - bytes_of)
    if masked:
        distances = np.where(bytes_of == 0, 0, distances)
    shifts = np.arange(4, dtype=_U64) * _U64(16)
    halves = (addends[:, None] >> shifts & _U64(0xFFFF)).astype(_I64) + distances.sum(axis=2)
    return np.asarray(((halves & 0xFFFF).astype(_U64) << shifts).sum(axis=1, dtype=_U64))


INTEGER_64 = table(
    ("v_lshlrev_b64", "u64 u32 u64", lambda a, b: b << (a & 63).astype(_U64)),
    ("v_lshrrev_b64", "u64 u32 u64", lambda a, b: b >> (a & 63).astype(_U64)),
    ("v_ashrrev_i64", "i64 u32 i64", lambda a, b: b >> (a & 63).astype(_I64)),
    ("v_qsad_pk_u16_u8", "u64 u64 u32 u64", lambda a, b, c: _four_sums(a, b, c, False)),
    ("v_mqsad_pk_u16_u8", "u64 u64 u32 u64", lambda a, b, c: _four_sums(a, b, c, True)),
)

# With the clamp bit: the exact result, saturated.
SATURATING = table(
    ("v_add_nc_u32", "u32 u32 u32", lambda a, b: _clip(_wide(a) + _wide(b), np.uint32)),
    ("v_sub_nc_u32", "u32 u32 u32", lambda a, b: _clip(_wide(a) - _wide(b), np.uint32)),
    ("v_subrev_nc_u32", "u32 u32 u32", lambda a, b: _clip(_wide(b) - _wide(a), np.uint32)),
    ("v_add_nc_i32", "i32 i32 i32", lambda a, b: _clip(_wide(a) + _wide(b), np.int32)),
    ("v_sub_nc_i32", "i32 i32 i32", lambda a, b: _clip(_wide(a) - _wide(b), np.int32)),
    ("v_mad_u32_u24", "u32 u32 u32 u32", lambda a, b, c: _clip(_u24(a) * _u24(b) + _wide(c), np.uint32)),
    ("v_mad_i32_i24", "i32 i32 i32 i32", lambda a, b, c: _clip(_s24(a) * _s24(b) + _wide(c), np.int32)),
    ("v_add_nc_u16", "u16 u16 u16", lambda a, b: _clip(_wide(a) + _wide(b), np.uint16)),
    ("v_sub_nc_u16", "u16 u16 u16", lambda a, b: _clip(_wide(a) - _wide(b), np.uint16)),
    ("v_add_nc_i16", "i16 i16 i16", lambda a, b: _clip(_wide(a) + _wide(b), np.int16)),
    ("v_sub_nc_i16", "i16 i16 i16", lambda a, b: _clip(_wide(a) - _wide(b), np.int16)),
    ("v_mad_u16", "u16 u16 u16 u16", lambda a, b, c: _clip(_wide(a) * _wide(b) + _wide(c), np.uint16)),
    ("v_mad_i16", "i16 i16 i16 i16", lambda a, b, c: _clip(_wide(a) * _wide(b) + _wide(c), np.int16)),
)

CASES: tuple[Case, ...] = (*INTEGER_32, *INTEGER_16, *INTEGER_64)
