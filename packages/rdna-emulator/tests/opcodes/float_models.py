"""NumPy models of the floating-point operations. Fused multiply-add is exact rational arithmetic, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from opcodes.cases import Array, Case, Model, table
from opcodes.values import unsigned

_FORMATS = {
    np.dtype(np.float16): (11, -24, 16),
    np.dtype(np.float32): (24, -149, 128),
    np.dtype(np.float64): (53, -1074, 1024),
}


def nearest(value: Fraction, dtype: np.dtype[Any]) -> float:
    """The float of ``dtype`` nearest to a rational number that is not 0, ties to even, infinite past the largest."""
    digits, lowest, limit = _FORMATS[dtype]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    rounded = round(size / unit) * unit  # Python's round is half to even
    if rounded >= Fraction(2) ** limit:
        return float("inf") if value > 0 else -float("inf")
    return float(rounded) if value > 0 else -float(rounded)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding."""
    with np.errstate(all="ignore"):
        return _fma(a, b, c)


def _fma(a: Array, b: Array, c: Array) -> Array:
    plain = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)
    factors = np.isfinite(a) & np.isfinite(b)
    result = np.where(factors & np.isinf(c), c, plain)  # the product of f64 may overflow on the way
    finite = factors & np.isfinite(c)
    for k in np.flatnonzero(finite):
        exact = Fraction(float(a[k])) * Fraction(float(b[k])) + Fraction(float(c[k]))
        if exact != 0:
            result[k] = nearest(exact, a.dtype)
        elif float(a[k]) * float(b[k]) != 0 or (a[k] == 0 or b[k] == 0):
            product = np.copysign(1.0, a[k]) * np.copysign(1.0, b[k])
            both_negative = product < 0 and np.signbit(c[k]) and (a[k] == 0 or b[k] == 0)
            result[k] = -0.0 if both_negative else 0.0
    return result


def fma_dx9(a: Array, b: Array, c: Array) -> Array:
    return np.where((a == 0) | (b == 0), c, fma(a, b, c))


def signalling(x: Array) -> Array:
    bits = x.view(unsigned(f"f{x.dtype.itemsize * 8}"))
    quiet = bits.dtype.type(1 << {2: 9, 4: 22, 8: 51}[x.dtype.itemsize])
    return np.asarray(np.isnan(x) & ((bits & quiet) == 0))


def _extreme(pick: Callable[[Array, Array], Array], zero_sign: Callable[[Array, Array], Array]) -> Model:
    def model(a: Array, b: Array) -> Array:
        result = np.where(pick(a, b), a, b)
        both_zero = (a == 0) & (b == 0)
        zeros = np.where(zero_sign(np.signbit(a), np.signbit(b)), a.dtype.type(-0.0), a.dtype.type(0.0))
        result = np.where(both_zero, zeros, result)
        result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
        return np.where(signalling(a) | signalling(b), a.dtype.type(np.nan), result)

    return model


minimum = _extreme(lambda a, b: a < b, np.logical_or)
maximum = _extreme(lambda a, b: a > b, np.logical_and)


def med3(a: Array, b: Array, c: Array) -> Array:
    low, high = minimum(minimum(a, b), c), maximum(maximum(a, b), c)
    middle = np.where(high == a, maximum(b, c), np.where(high == b, maximum(a, c), maximum(a, b)))
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), low, middle)


def _fract(x: Array) -> Array:
    result = x - np.floor(x)
    return np.where(result >= 1, np.nextafter(x.dtype.type(1), x.dtype.type(0)), result)


def _ldexp(x: Array, n: Array) -> Array:
    count = np.clip(n.astype(np.int64), -5000, 5000)
    result = np.array(x, copy=True)
    ordinary = np.isfinite(x) & (x != 0)
    for k in np.flatnonzero(ordinary):
        result[k] = nearest(Fraction(float(x[k])) * Fraction(2) ** int(count[k]), x.dtype)
    return result


def _frexp_mant(x: Array) -> Array:
    mantissa = np.frexp(x.astype(np.float64))[0]
    return np.where(np.isfinite(x), mantissa, x)


def _frexp_exp(x: Array) -> Array:
    return np.where(np.isfinite(x), np.frexp(x.astype(np.float64))[1], 0)


def flush(x: Array) -> Array:
    """f32 denormals become zeros of their sign."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def _of_f64(f: Callable[[Array], Array]) -> Model:
    return lambda x: flush(f(flush(x).astype(np.float64)).astype(np.float32))


def _sin_turns(x: Array) -> Array:
    rest = x - np.rint(x)
    return np.where(
        rest == 0,
        np.copysign(0.0, x),
        np.sin(2 * np.pi * np.where(np.abs(rest) > 0.25, np.copysign(0.5, rest) - rest, rest)),
    )


def _cos_turns(x: Array) -> Array:
    rest = np.abs(x - np.rint(x))
    return np.asarray(np.sin(2 * np.pi * (0.25 - rest)))


def _cube_major(x: Array, y: Array, z: Array) -> Array:
    """0, 1 or 2: the largest of the coordinates, ties to z, then y."""
    z_largest = (np.abs(z) >= np.abs(x)) & (np.abs(z) >= np.abs(y))
    return np.where(z_largest, 2, np.where(np.abs(y) >= np.abs(x), 1, 0))


def _cube_id(x: Array, y: Array, z: Array) -> Array:
    major = _cube_major(x, y, z)
    return 2 * major + (np.choose(major, [x, y, z]) < 0)


def _cube_sc(x: Array, y: Array, z: Array) -> Array:
    return np.choose(_cube_major(x, y, z), [np.where(x < 0, z, -z), x, np.where(z < 0, -x, x)])


def _cube_tc(x: Array, y: Array, z: Array) -> Array:
    return np.choose(_cube_major(x, y, z), [-y, np.where(y < 0, -z, z), -y])


def _cube_ma(x: Array, y: Array, z: Array) -> Array:
    return np.choose(_cube_major(x, y, z), [x, y, z]) * np.float32(2)


def _mullit(a: Array, b: Array, c: Array) -> Array:
    lowest = -np.finfo(np.float32).max
    off = (b == lowest) | (b == -np.inf) | np.isnan(b) | (c <= 0) | np.isnan(c)
    return np.where(off, lowest, a * b)


def _arithmetic(t: str) -> tuple[Case, ...]:
    return table(
        (f"v_add_{t}", f"{t} {t} {t}", lambda a, b: a + b),
        (f"v_mul_{t}", f"{t} {t} {t}", lambda a, b: a * b),
        (f"v_min_{t}", f"{t} {t} {t}", minimum),
        (f"v_max_{t}", f"{t} {t} {t}", maximum),
        (f"v_fma_{t}", f"{t} {t} {t} {t}", fma),
        (f"v_trunc_{t}", f"{t} {t}", np.trunc),
        (f"v_ceil_{t}", f"{t} {t}", np.ceil),
        (f"v_floor_{t}", f"{t} {t}", np.floor),
        (f"v_rndne_{t}", f"{t} {t}", np.rint),
        (f"v_fract_{t}", f"{t} {t}", _fract),
        (f"v_frexp_mant_{t}", f"{t} {t}", _frexp_mant),
    )


def _narrow(t: str) -> tuple[Case, ...]:
    return table(
        (f"v_sub_{t}", f"{t} {t} {t}", lambda a, b: a - b),
        (f"v_subrev_{t}", f"{t} {t} {t}", lambda a, b: b - a),
        (f"v_min3_{t}", f"{t} {t} {t} {t}", lambda a, b, c: minimum(minimum(a, b), c)),
        (f"v_max3_{t}", f"{t} {t} {t} {t}", lambda a, b, c: maximum(maximum(a, b), c)),
        (f"v_med3_{t}", f"{t} {t} {t} {t}", med3),
        (f"v_maxmin_{t}", f"{t} {t} {t} {t}", lambda a, b, c: minimum(maximum(a, b), c)),
        (f"v_minmax_{t}", f"{t} {t} {t} {t}", lambda a, b, c: maximum(minimum(a, b), c)),
    )


ARITHMETIC = (
    *(case for t in ("f16", "f32", "f64") for case in _arithmetic(t)),
    *(case for t in ("f16", "f32") for case in _narrow(t)),
    *table(
        ("v_mul_dx9_zero_f32", "f32 f32 f32", lambda a, b: np.where((a == 0) | (b == 0), np.float32(0), a * b)),
        ("v_fma_dx9_zero_f32", "f32 f32 f32 f32", fma_dx9),
        ("v_mullit_f32", "f32 f32 f32 f32", _mullit),
        ("v_ldexp_f16", "f16 f16 i16", _ldexp),
        ("v_ldexp_f32", "f32 f32 i32", _ldexp),
        ("v_ldexp_f64", "f64 f64 i32", _ldexp),
        ("v_frexp_exp_i16_f16", "i16 f16", _frexp_exp),
        ("v_frexp_exp_i32_f32", "i32 f32", _frexp_exp),
        ("v_frexp_exp_i32_f64", "i32 f64", _frexp_exp),
        ("v_cubeid_f32", "f32 f32 f32 f32", _cube_id),
        ("v_cubesc_f32", "f32 f32 f32 f32", _cube_sc),
        ("v_cubetc_f32", "f32 f32 f32 f32", _cube_tc),
        ("v_cubema_f32", "f32 f32 f32 f32", _cube_ma),
    ),
)

# f32: about one unit in the last place, denormals flushed. f16: the exact value rounded, or its neighbour.
TRANSCENDENTAL = table(
    ("v_exp_f32", "f32 f32", _of_f64(np.exp2), 1),
    ("v_log_f32", "f32 f32", _of_f64(np.log2), 2),
    ("v_rcp_f32", "f32 f32", _of_f64(lambda x: 1 / x), 1),
    ("v_rcp_iflag_f32", "f32 f32", _of_f64(lambda x: 1 / x), 1),
    ("v_rsq_f32", "f32 f32", _of_f64(lambda x: 1 / np.sqrt(x)), 1),
    ("v_sqrt_f32", "f32 f32", _of_f64(np.sqrt), 1),
    ("v_sin_f32", "f32 f32", _of_f64(_sin_turns), 2),
    ("v_cos_f32", "f32 f32", _of_f64(_cos_turns), 2),
    ("v_exp_f16", "f16 f16", lambda x: np.exp2(x.astype(np.float64)), 1),
    ("v_log_f16", "f16 f16", lambda x: np.log2(x.astype(np.float64)), 1),
    ("v_rcp_f16", "f16 f16", lambda x: 1 / x.astype(np.float64), 1),
    ("v_rsq_f16", "f16 f16", lambda x: 1 / np.sqrt(x.astype(np.float64)), 1),
    ("v_sqrt_f16", "f16 f16", lambda x: np.sqrt(x.astype(np.float64)), 1),
    ("v_sin_f16", "f16 f16", lambda x: _sin_turns(x.astype(np.float64)), 1),
    ("v_cos_f16", "f16 f16", lambda x: _cos_turns(x.astype(np.float64)), 1),
    ("v_rcp_f64", "f64 f64", lambda x: 1 / x, 1),
    ("v_rsq_f64", "f64 f64", lambda x: 1 / np.sqrt(x), 2),
    ("v_sqrt_f64", "f64 f64", np.sqrt, 1),
)

CASES: tuple[Case, ...] = (*ARITHMETIC, *TRANSCENDENTAL)
