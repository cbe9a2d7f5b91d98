// f16 arithmetic: nearest even, denormals kept. The compiler computes + - * in f32 and rounds once more, which is exact
// because f32 has more than twice the precision of f16; fused multiply-add needs `fused_half`.
#include "valu/float.hpp"

namespace rdna {
namespace {

RDNA_INLINE f32x wide(f16x x) { return convert<f32x>(x); }
RDNA_INLINE f16x narrow(f32x x) { return convert<f16x>(x); }

RDNA_INLINE f16x scale(f16x x, i16x exponent) {
  const i16x bounded = __builtin_elementwise_max(__builtin_elementwise_min(exponent, i16x(60)), i16x(-60));
  const f32x power = bits<f32x>((convert<i32x>(bounded) + 127) << 23);
  return narrow(wide(x) * power);
}

RDNA_INLINE i16x split_exponent(f16x x) {
  const f32x value = wide(x);  // f16 denormals are normal there
  const i32x exponent = (bits<i32x>(value) >> 23 & 0xff) - 126;
  const i32x counted = (absolute(value) < std::numeric_limits<float>::infinity()) & (value != 0.0f);
  return convert<i16x>(counted & exponent);
}

RDNA_INLINE f16x split_mantissa(f16x x) {
  const f32x value = wide(x);
  const f32x mantissa = bits<f32x>((bits<u32x>(value) & 0x807fffffu) | 0x3f000000u);
  const i32x counted = (absolute(value) < std::numeric_limits<float>::infinity()) & (value != 0.0f);
  return narrow(counted != 0 ? mantissa : value);
}

// Nearest even integer, through a sum whose last place is 1. Zeros take the sign of `x`. (The rounding builtins between
// conversions from and to f16 become calls for single lanes.)
RDNA_INLINE f32x nearest(f32x x) {
  constexpr float kOneInLastPlace = 0x1.8p23f;
  return (x + kOneInLastPlace) - kOneInLastPlace;
}
RDNA_INLINE f32x signed_as(f32x result, f32x x) {
  return bits<f32x>((bits<u32x>(result) & 0x7fffffffu) | (bits<u32x>(x) & 0x80000000u));
}
RDNA_INLINE f32x floor_of(f32x x) {
  const f32x near = nearest(x);
  return near > x ? near - 1.0f : near;
}
RDNA_INLINE f32x ceil_of(f32x x) {
  const f32x near = nearest(x);
  return near < x ? near + 1.0f : near;
}

RDNA_INLINE u32x pack(u16x low, u16x high) { return convert<u32x>(low) | convert<u32x>(high) << 16; }

const Registration registration{
    {"v_add_f16", operation<[](f16x a, f16x b) { return a + b; }>},
    {"v_sub_f16", operation<[](f16x a, f16x b) { return a - b; }>},
    {"v_subrev_f16", operation<[](f16x a, f16x b) { return b - a; }>},
    {"v_mul_f16", operation<[](f16x a, f16x b) { return a * b; }>},
    {"v_fma_f16", operation<[](f16x a, f16x b, f16x c) { return fused_half(a, b, c); }>},
    {"v_fmac_f16", operation<[](f16x a, f16x b, f16x c) { return fused_half(a, b, c); }>},
    {"v_fmaak_f16", operation<[](f16x a, f16x b, f16x c) { return fused_half(a, b, c); }>},
    {"v_fmamk_f16", operation<[](f16x a, f16x b, f16x c) { return fused_half(a, b, c); }>},
    {"v_min_f16", operation<[](f16x a, f16x b) { return minimum(a, b); }>},
    {"v_max_f16", operation<[](f16x a, f16x b) { return maximum(a, b); }>},
    {"v_min3_f16", operation<[](f16x a, f16x b, f16x c) { return minimum(minimum(a, b), c); }>},
    {"v_max3_f16", operation<[](f16x a, f16x b, f16x c) { return maximum(maximum(a, b), c); }>},
    {"v_med3_f16", operation<[](f16x a, f16x b, f16x c) { return median(a, b, c); }>},
    {"v_maxmin_f16", operation<[](f16x a, f16x b, f16x c) { return minimum(maximum(a, b), c); }>},
    {"v_minmax_f16", operation<[](f16x a, f16x b, f16x c) { return maximum(minimum(a, b), c); }>},
    {"v_trunc_f16", operation<[](f16x a) { return narrow(signed_as(floor_of(absolute(wide(a))), wide(a))); }>},
    {"v_ceil_f16", operation<[](f16x a) { return narrow(signed_as(ceil_of(wide(a)), wide(a))); }>},
    {"v_floor_f16", operation<[](f16x a) { return narrow(signed_as(floor_of(wide(a)), wide(a))); }>},
    {"v_rndne_f16", operation<[](f16x a) { return narrow(signed_as(nearest(wide(a)), wide(a))); }>},
    {"v_fract_f16", operation<[](f16x a) {
       const f32x value = wide(a);
       const f16x result = narrow(value - signed_as(floor_of(value), value));
       const f16x below_one = bits<f16x>(u16x(u16(0x3bff)));
       return result > below_one ? below_one : result;
     }>},
    {"v_ldexp_f16", operation<[](f16x a, i16x b) { return scale(a, b); }>},
    {"v_frexp_exp_i16_f16", operation<[](f16x a) { return split_exponent(a); }>},
    {"v_frexp_mant_f16", operation<[](f16x a) { return split_mantissa(a); }>},
    {"v_pack_b32_f16", operation<[](u16x a, u16x b) { return pack(a, b); }>},
};

}  // namespace
}  // namespace rdna
