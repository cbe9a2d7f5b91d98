"""NumPy-free models of the SALU operations, from the ISA's definitions: exact integers, floats through struct."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
# Sources a and b (as wide as the operation says), SCC and the old destination; result and SCC (None: unchanged).
Model = Callable[[int, int, int, int], tuple[int, int | None]]


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits & M32))[0])


def f16(bits: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


def f32_bits(value: float) -> int:
    if math.isnan(value):
        return 0x7FC00000
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def f16_bits(value: float) -> int:
    if math.isnan(value):
        return 0x7E00
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def same_float(a: int, b: int, half: bool = False) -> bool:
    """Equal bits, or two NaNs: their payloads are not compared."""
    to_float = f16 if half else f32
    return a == b or (math.isnan(to_float(a)) and math.isnan(to_float(b)))


def _plain(f: Callable[[int, int], int], bits: int = 32) -> Model:
    return lambda a, b, scc, old: (f(a, b) & ((1 << bits) - 1), None)


def _not_zero(f: Callable[[int, int], int], bits: int = 32) -> Model:
    def model(a: int, b: int, scc: int, old: int) -> tuple[int, int | None]:
        result = f(a, b) & ((1 << bits) - 1)
        return result, int(result != 0)

    return model


def _carry(f: Callable[[int, int, int], int]) -> Model:
    def model(a: int, b: int, scc: int, old: int) -> tuple[int, int | None]:
        exact = f(a, b, scc)
        return exact & M32, int(exact < 0 or exact > M32)

    return model


def _overflow(f: Callable[[int, int], int]) -> Model:
    def model(a: int, b: int, scc: int, old: int) -> tuple[int, int | None]:
        exact = f(signed(a), signed(b))
        return exact & M32, int(not -(1 << 31) <= exact < 1 << 31)

    return model


def _pick(first: Callable[[int, int], bool]) -> Model:
    return lambda a, b, scc, old: (a if first(a, b) else b, int(first(a, b)))


def _field(value: int, control: int, bits: int, with_sign: bool) -> int:
    offset, width = control & (bits - 1), control >> 16 & 0x7F
    if width == 0:
        return 0
    shifted = (signed(value, bits) if with_sign else value) >> offset
    if width >= bits:
        return shifted
    part = shifted & ((1 << width) - 1)
    return signed(part, width) if with_sign else part


def _leading(value: int, bits: int) -> int:
    return bits - value.bit_length() if value else -1


def _sign_run(value: int, bits: int) -> int:
    top = value >> (bits - 1)
    return next((k for k in range(1, bits) if value >> (bits - 1 - k) & 1 != top), -1)


def _trailing(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else -1


def _reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _quads(value: int, bits: int) -> int:
    return sum((value >> 4 * k & 15 != 0) << k for k in range(bits // 4))


def _whole_quads(value: int, bits: int) -> int:
    return sum((15 if value >> 4 * k & 15 else 0) << 4 * k for k in range(bits // 4))


# Widths of source a, source b and the result in bits; b 0 where there is none.
INTEGER: dict[str, tuple[int, int, int, Model]] = {
    "s_add_u32": (32, 32, 32, _carry(lambda a, b, c: a + b)),
    "s_sub_u32": (32, 32, 32, _carry(lambda a, b, c: a - b)),
    "s_addc_u32": (32, 32, 32, _carry(lambda a, b, c: a + b + c)),
    "s_subb_u32": (32, 32, 32, _carry(lambda a, b, c: a - b - c)),
    "s_add_i32": (32, 32, 32, _overflow(lambda a, b: a + b)),
    "s_sub_i32": (32, 32, 32, _overflow(lambda a, b: a - b)),
    "s_absdiff_i32": (32, 32, 32, _not_zero(lambda a, b: abs(signed((a - b) & M32)))),
    "s_min_i32": (32, 32, 32, _pick(lambda a, b: signed(a) < signed(b))),
    "s_min_u32": (32, 32, 32, _pick(lambda a, b: a < b)),
    "s_max_i32": (32, 32, 32, _pick(lambda a, b: signed(a) >= signed(b))),
    "s_max_u32": (32, 32, 32, _pick(lambda a, b: a >= b)),
    "s_mul_i32": (32, 32, 32, _plain(lambda a, b: a * b)),
    "s_mul_hi_u32": (32, 32, 32, _plain(lambda a, b: a * b >> 32)),
    "s_mul_hi_i32": (32, 32, 32, _plain(lambda a, b: signed(a) * signed(b) >> 32)),
    "s_lshl_b32": (32, 32, 32, _not_zero(lambda a, b: a << (b & 31))),
    "s_lshl_b64": (64, 32, 64, _not_zero(lambda a, b: a << (b & 63), 64)),
    "s_lshr_b32": (32, 32, 32, _not_zero(lambda a, b: a >> (b & 31))),
    "s_lshr_b64": (64, 32, 64, _not_zero(lambda a, b: a >> (b & 63), 64)),
    "s_ashr_i32": (32, 32, 32, _not_zero(lambda a, b: signed(a) >> (b & 31))),
    "s_ashr_i64": (64, 32, 64, _not_zero(lambda a, b: signed(a, 64) >> (b & 63), 64)),
    "s_bfe_u32": (32, 32, 32, _not_zero(lambda a, b: _field(a, b, 32, False))),
    "s_bfe_i32": (32, 32, 32, _not_zero(lambda a, b: _field(a, b, 32, True))),
    "s_bfe_u64": (64, 32, 64, _not_zero(lambda a, b: _field(a, b, 64, False), 64)),
    "s_bfe_i64": (64, 32, 64, _not_zero(lambda a, b: _field(a, b, 64, True), 64)),
    "s_bfm_b32": (32, 32, 32, _plain(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))),
    "s_bfm_b64": (32, 32, 64, _plain(lambda a, b: ((1 << (a & 63)) - 1) << (b & 63), 64)),
    "s_cselect_b32": (32, 32, 32, lambda a, b, scc, old: (a if scc else b, None)),
    "s_cselect_b64": (64, 64, 64, lambda a, b, scc, old: (a if scc else b, None)),
    "s_pack_ll_b32_b16": (32, 32, 32, _plain(lambda a, b: (a & 0xFFFF) | b << 16)),
    "s_pack_lh_b32_b16": (32, 32, 32, _plain(lambda a, b: (a & 0xFFFF) | b >> 16 << 16)),
    "s_pack_hh_b32_b16": (32, 32, 32, _plain(lambda a, b: a >> 16 | b >> 16 << 16)),
    "s_pack_hl_b32_b16": (32, 32, 32, _plain(lambda a, b: a >> 16 | b << 16)),
    "s_mov_b32": (32, 0, 32, _plain(lambda a, b: a)),
    "s_mov_b64": (64, 0, 64, _plain(lambda a, b: a, 64)),
    "s_cmov_b32": (32, 0, 32, lambda a, b, scc, old: (a if scc else old & M32, None)),
    "s_cmov_b64": (64, 0, 64, lambda a, b, scc, old: (a if scc else old, None)),
    "s_brev_b32": (32, 0, 32, _plain(lambda a, b: _reverse(a, 32))),
    "s_brev_b64": (64, 0, 64, _plain(lambda a, b: _reverse(a, 64), 64)),
    "s_ctz_i32_b32": (32, 0, 32, _plain(lambda a, b: _trailing(a))),
    "s_ctz_i32_b64": (64, 0, 32, _plain(lambda a, b: _trailing(a))),
    "s_clz_i32_u32": (32, 0, 32, _plain(lambda a, b: _leading(a, 32))),
    "s_clz_i32_u64": (64, 0, 32, _plain(lambda a, b: _leading(a, 64))),
    "s_cls_i32": (32, 0, 32, _plain(lambda a, b: _sign_run(a, 32))),
    "s_cls_i32_i64": (64, 0, 32, _plain(lambda a, b: _sign_run(a, 64))),
    "s_sext_i32_i8": (32, 0, 32, _plain(lambda a, b: signed(a & 0xFF, 8))),
    "s_sext_i32_i16": (32, 0, 32, _plain(lambda a, b: signed(a & 0xFFFF, 16))),
    "s_bitset0_b32": (32, 0, 32, lambda a, b, scc, old: (old & M32 & ~(1 << (a & 31)), None)),
    "s_bitset1_b32": (32, 0, 32, lambda a, b, scc, old: (old & M32 | 1 << (a & 31), None)),
    "s_bitset0_b64": (32, 0, 64, lambda a, b, scc, old: (old & ~(1 << (a & 63)), None)),
    "s_bitset1_b64": (32, 0, 64, lambda a, b, scc, old: (old | 1 << (a & 63), None)),
    "s_bitreplicate_b64_b32": (32, 0, 64, _plain(lambda a, b: sum((a >> k & 1) * (3 << 2 * k) for k in range(32)), 64)),
    "s_abs_i32": (32, 0, 32, _not_zero(lambda a, b: abs(signed(a)))),
    "s_bcnt0_i32_b32": (32, 0, 32, _not_zero(lambda a, b: 32 - a.bit_count())),
    "s_bcnt0_i32_b64": (64, 0, 32, _not_zero(lambda a, b: 64 - a.bit_count())),
    "s_bcnt1_i32_b32": (32, 0, 32, _not_zero(lambda a, b: a.bit_count())),
    "s_bcnt1_i32_b64": (64, 0, 32, _not_zero(lambda a, b: a.bit_count())),
    "s_not_b32": (32, 0, 32, _not_zero(lambda a, b: ~a)),
    "s_not_b64": (64, 0, 64, _not_zero(lambda a, b: ~a, 64)),
    "s_quadmask_b32": (32, 0, 32, _not_zero(lambda a, b: _quads(a, 32))),
    "s_quadmask_b64": (64, 0, 64, _not_zero(lambda a, b: _quads(a, 64), 64)),
    "s_wqm_b32": (32, 0, 32, _not_zero(lambda a, b: _whole_quads(a, 32))),
    "s_wqm_b64": (64, 0, 64, _not_zero(lambda a, b: _whole_quads(a, 64), 64)),
}
LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "and_not1": lambda a, b: a & ~b,
    "or_not1": lambda a, b: a | ~b,
}
for _name, _f in LOGIC.items():
    for _bits in (32, 64):
        INTEGER[f"s_{_name}_b{_bits}"] = (_bits, _bits, _bits, _not_zero(_f, _bits))


def _shift_and_add(shift: int) -> Callable[[int, int, int], int]:
    return lambda a, b, c: (a << shift) + b


for _shift in range(1, 5):
    INTEGER[f"s_lshl{_shift}_add_u32"] = (32, 32, 32, _carry(_shift_and_add(_shift)))

# EXEC from the source and the old EXEC; the result is the old EXEC (or the new one of the wrexec forms).
EXEC_LOGIC: dict[str, Callable[[int, int], int]] = {
    **{f"{name}_saveexec": f for name, f in LOGIC.items()},
    "and_not0_saveexec": lambda a, e: ~a & e,
    "or_not0_saveexec": lambda a, e: ~a | e,
    "and_not0_wrexec": lambda a, e: ~a & e,
    "and_not1_wrexec": lambda a, e: a & ~e,
}

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
Compare = Callable[[int, int], bool]


def _ordered(order: Callable[[float, float], bool], value: Callable[[int], float]) -> Compare:
    return lambda a, b: order(value(a), value(b))


def _bit_is(wanted: int, bits: int) -> Compare:
    return lambda a, b: a >> (b & (bits - 1)) & 1 == wanted


# Width of the sources and the condition.
COMPARE: dict[str, tuple[int, int, Compare]] = {}
for _name, _order in _ORDER.items():
    COMPARE[f"s_cmp_{_name}_i32"] = (32, 32, _ordered(_order, signed))
    COMPARE[f"s_cmp_{_name}_u32"] = (32, 32, _order)
for _bits in (32, 64):
    for _value in (0, 1):
        COMPARE[f"s_bitcmp{_value}_b{_bits}"] = (_bits, 32, _bit_is(_value, _bits))
COMPARE["s_cmp_eq_u64"] = (64, 64, lambda a, b: a == b)
COMPARE["s_cmp_lg_u64"] = (64, 64, lambda a, b: a != b)
_FLOAT_ORDER: dict[str, Callable[[float, float], bool]] = {
    **_ORDER,
    "lg": lambda a, b: a < b or a > b,
    "o": lambda a, b: a == a and b == b,
    "u": lambda a, b: a != a or b != b,
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: not a < b,
}
FLOAT_COMPARE: dict[str, tuple[int, int, Compare]] = {}
for _name, _order in _FLOAT_ORDER.items():
    FLOAT_COMPARE[f"s_cmp_{_name}_f32"] = (32, 32, _ordered(_order, f32))
    FLOAT_COMPARE[f"s_cmp_{_name}_f16"] = (32, 32, _ordered(_order, f16))


def _exact(f: Callable[[Any, Any, Any], Any], half: bool) -> Callable[[int, int, int], int]:
    """Rounds an exact result; infinities, NaNs and zeros through Python's floats."""
    read, write = (f16, f16_bits) if half else (f32, f32_bits)

    def operation(a: int, b: int, c: int) -> int:
        x, y, z = read(a), read(b), read(c)
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            try:
                return write(float(f(x, y, z)))
            except (OverflowError, ValueError):
                return write(math.nan)
        result = f(Fraction(x), Fraction(y), Fraction(z))
        if result == 0:
            return write(float(f(x, y, z)))
        return _round(result, half)

    return operation


def _round(value: Fraction, half: bool) -> int:
    """The nearest f16 or f32, ties to even."""
    bits, least, most = (11, -24, 16) if half else (24, -149, 128)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    step = max(exponent - bits + 1, least)
    scaled = magnitude / Fraction(2) ** step
    rounded = round(scaled)  # to even
    result = Fraction(rounded) * Fraction(2) ** step
    sign = 1 if value < 0 else 0
    write = f16_bits if half else f32_bits
    if result >= Fraction(2) ** most:
        return write(-math.inf if sign else math.inf)
    return write(math.copysign(float(result), value))


def _minimum(a: int, b: int, half: bool, maximum: bool) -> int:
    read, quiet = (f16, 0x200) if half else (f32, 0x400000)
    if half:
        a, b = a & 0xFFFF, b & 0xFFFF
    x, y = read(a), read(b)
    for bits, value in ((a, x), (b, y)):
        if math.isnan(value) and not bits & quiet:
            return bits | quiet
    if math.isnan(y):
        return a
    if math.isnan(x):
        return b
    if x == y:
        negative = a if math.copysign(1, x) < 0 else b
        positive = b if negative == a else a
        return positive if maximum else negative
    return a if (x > y) == maximum else b


def _rtz(value: float) -> int:
    if not math.isfinite(value):
        return f16_bits(value)
    nearest = f16_bits(value)
    return nearest - 1 if abs(f16(nearest)) > abs(value) else nearest


def _integral(f: Callable[[float], int], value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(float(f(value)), value)


def _to_integer(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    return int(max(low, min(high, math.trunc(value)))) if math.isfinite(value) else (high if value > 0 else low)


_INTEGRAL: dict[str, Callable[[float], int]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "rndne": round,
}
FloatModel = Callable[[int, int, int], int]  # a, b and the old destination


def _extreme(half: bool, largest: bool) -> FloatModel:
    return lambda a, b, c: _minimum(a, b, half, largest)


def _to_integral(
    to_int: Callable[[float], int], read: Callable[[int], float], write: Callable[[float], int]
) -> FloatModel:
    return lambda a, b, c: write(_integral(to_int, read(a)))


FLOAT: dict[str, tuple[int, bool, FloatModel]] = {}  # sources, whether the result is f16
for _half, _suffix in ((False, "f32"), (True, "f16")):
    FLOAT[f"s_add_{_suffix}"] = (2, _half, _exact(lambda a, b, c: a + b, _half))
    FLOAT[f"s_sub_{_suffix}"] = (2, _half, _exact(lambda a, b, c: a - b, _half))
    FLOAT[f"s_mul_{_suffix}"] = (2, _half, _exact(lambda a, b, c: a * b, _half))
    FLOAT[f"s_fmac_{_suffix}"] = (2, _half, _exact(lambda a, b, c: a * b + c, _half))
    FLOAT[f"s_min_{_suffix}"] = (2, _half, _extreme(_half, False))
    FLOAT[f"s_max_{_suffix}"] = (2, _half, _extreme(_half, True))
    for _name, _to_int in _INTEGRAL.items():
        _read, _write = (f16, f16_bits) if _half else (f32, f32_bits)
        FLOAT[f"s_{_name}_{_suffix}"] = (1, _half, _to_integral(_to_int, _read, _write))
FLOAT |= {
    "s_cvt_f32_i32": (1, False, lambda a, b, c: _round(Fraction(signed(a)), False) if a else 0),
    "s_cvt_f32_u32": (1, False, lambda a, b, c: _round(Fraction(a), False) if a else 0),
    "s_cvt_i32_f32": (1, False, lambda a, b, c: _to_integer(f32(a), -(1 << 31), (1 << 31) - 1) & M32),
    "s_cvt_u32_f32": (1, False, lambda a, b, c: _to_integer(f32(a), 0, M32)),
    "s_cvt_f16_f32": (1, True, lambda a, b, c: f16_bits(f32(a))),
    "s_cvt_f32_f16": (1, False, lambda a, b, c: f32_bits(f16(a))),
    "s_cvt_hi_f32_f16": (1, False, lambda a, b, c: f32_bits(f16(a >> 16))),
    "s_cvt_pk_rtz_f16_f32": (2, False, lambda a, b, c: _rtz(f32(a)) | _rtz(f32(b)) << 16),
}
