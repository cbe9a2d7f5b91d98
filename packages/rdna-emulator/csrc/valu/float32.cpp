// f32 arithmetic without the transcendental functions.
#include "valu/float.hpp"

namespace rdna {
namespace {

RDNA_INLINE f32x dx9_multiply(f32x a, f32x b) {
  return ((a == 0.0f) | (b == 0.0f)) ? f32x(0.0f) : a * b;
}
RDNA_INLINE f32x dx9_fused(f32x a, f32x b, f32x c) {
  return ((a == 0.0f) | (b == 0.0f)) ? c : fused(a, b, c);
}

// Through f64, where the scaling is exact: one rounding.
RDNA_INLINE f32x scale(f32x x, i32x exponent) {
  const i32x bounded = __builtin_elementwise_max(__builtin_elementwise_min(exponent, i32x(400)), i32x(-400));
  const f64x power = bits<f64x>(convert<i64x>(bounded + 1023) << 52);
  return convert<f32x>(convert<f64x>(x) * power);
}

RDNA_INLINE u32x is_finite_nonzero(f32x x) {
  return bits<u32x>((absolute(x) < std::numeric_limits<float>::infinity()) & (x != 0.0f));
}
constexpr float kTwo24 = 16777216.0f;

RDNA_INLINE i32x split_exponent(f32x x) {
  const i32x tiny = absolute(x) < std::numeric_limits<float>::min() ? i32x(-1) : i32x(0);
  const f32x normal = tiny != 0 ? x * kTwo24 : x;
  const i32x exponent = (bits<i32x>(normal) >> 23 & 0xff) - 126 + (tiny & -24);
  return bits<i32x>(is_finite_nonzero(x)) & exponent;
}

RDNA_INLINE f32x split_mantissa(f32x x) {
  const f32x normal = absolute(x) < std::numeric_limits<float>::min() ? x * kTwo24 : x;
  const u32x mantissa = (bits<u32x>(normal) & 0x807fffffu) | 0x3f000000u;
  return is_finite_nonzero(x) != 0u ? bits<f32x>(mantissa) : x + x;  // the sum makes a NaN quiet
}

RDNA_INLINE f32x mullit(f32x a, f32x b, f32x c) {
  constexpr float kLowest = -std::numeric_limits<float>::max();
  return ((b > kLowest) & (c > 0.0f)) ? a * b : f32x(kLowest);
}

// Cube map coordinates: the major axis is the largest of z, y, x; ties go to the first.
RDNA_INLINE i32x z_major(f32x x, f32x y, f32x z) {
  return (absolute(z) >= absolute(x)) & (absolute(z) >= absolute(y));
}
RDNA_INLINE i32x y_major(f32x x, f32x y) { return absolute(y) >= absolute(x); }

RDNA_INLINE f32x cube_face(f32x x, f32x y, f32x z) {
  const f32x z_face = z < 0.0f ? f32x(5.0f) : f32x(4.0f);
  const f32x y_face = y < 0.0f ? f32x(3.0f) : f32x(2.0f);
  const f32x x_face = x < 0.0f ? f32x(1.0f) : f32x(0.0f);
  return z_major(x, y, z) != 0 ? z_face : y_major(x, y) != 0 ? y_face : x_face;
}
RDNA_INLINE f32x cube_s(f32x x, f32x y, f32x z) {
  const f32x z_value = z < 0.0f ? negated(x) : x;
  const f32x x_value = x < 0.0f ? z : negated(z);
  return z_major(x, y, z) != 0 ? z_value : y_major(x, y) != 0 ? x : x_value;
}
RDNA_INLINE f32x cube_t(f32x x, f32x y, f32x z) {
  const f32x y_value = y < 0.0f ? negated(z) : z;
  return ((z_major(x, y, z) == 0) & (y_major(x, y) != 0)) ? y_value : negated(y);
}
RDNA_INLINE f32x cube_major(f32x x, f32x y, f32x z) {
  return (z_major(x, y, z) != 0 ? z : y_major(x, y) != 0 ? y : x) * 2.0f;
}

const Registration registration{
    {"v_add_f32", operation<[](f32x a, f32x b) { return a + b; }>},
    {"v_sub_f32", operation<[](f32x a, f32x b) { return a - b; }>},
    {"v_subrev_f32", operation<[](f32x a, f32x b) { return b - a; }>},
    {"v_mul_f32", operation<[](f32x a, f32x b) { return a * b; }>},
    {"v_mul_dx9_zero_f32", operation<[](f32x a, f32x b) { return dx9_multiply(a, b); }>},
    {"v_fma_f32", operation<[](f32x a, f32x b, f32x c) { return fused(a, b, c); }>},
    {"v_fmac_f32", operation<[](f32x a, f32x b, f32x c) { return fused(a, b, c); }>},
    {"v_fmaak_f32", operation<[](f32x a, f32x b, f32x c) { return fused(a, b, c); }>},
    {"v_fmamk_f32", operation<[](f32x a, f32x b, f32x c) { return fused(a, b, c); }>},
    {"v_fma_dx9_zero_f32", operation<[](f32x a, f32x b, f32x c) { return dx9_fused(a, b, c); }>},
    {"v_fmac_dx9_zero_f32", operation<[](f32x a, f32x b, f32x c) { return dx9_fused(a, b, c); }>},
    {"v_min_f32", operation<[](f32x a, f32x b) { return minimum(a, b); }>},
    {"v_max_f32", operation<[](f32x a, f32x b) { return maximum(a, b); }>},
    {"v_min3_f32", operation<[](f32x a, f32x b, f32x c) { return minimum(minimum(a, b), c); }>},
    {"v_max3_f32", operation<[](f32x a, f32x b, f32x c) { return maximum(maximum(a, b), c); }>},
    {"v_med3_f32", operation<[](f32x a, f32x b, f32x c) { return median(a, b, c); }>},
    {"v_maxmin_f32", operation<[](f32x a, f32x b, f32x c) { return minimum(maximum(a, b), c); }>},
    {"v_minmax_f32", operation<[](f32x a, f32x b, f32x c) { return maximum(minimum(a, b), c); }>},
    {"v_mullit_f32", operation<[](f32x a, f32x b, f32x c) { return mullit(a, b, c); }>},
    {"v_trunc_f32", operation<[](f32x a) { return __builtin_elementwise_trunc(a); }>},
    {"v_ceil_f32", operation<[](f32x a) { return __builtin_elementwise_ceil(a); }>},
    {"v_floor_f32", operation<[](f32x a) { return __builtin_elementwise_floor(a); }>},
    {"v_rndne_f32", operation<[](f32x a) { return __builtin_elementwise_roundeven(a); }>},
    {"v_fract_f32", operation<[](f32x a) { return fraction(a); }>},
    {"v_ldexp_f32", operation<[](f32x a, i32x b) { return scale(a, b); }>},
    {"v_frexp_exp_i32_f32", operation<[](f32x a) { return split_exponent(a); }>},
    {"v_frexp_mant_f32", operation<[](f32x a) { return split_mantissa(a); }>},
    {"v_cubeid_f32", operation<[](f32x a, f32x b, f32x c) { return cube_face(a, b, c); }>},
    {"v_cubesc_f32", operation<[](f32x a, f32x b, f32x c) { return cube_s(a, b, c); }>},
    {"v_cubetc_f32", operation<[](f32x a, f32x b, f32x c) { return cube_t(a, b, c); }>},
    {"v_cubema_f32", operation<[](f32x a, f32x b, f32x c) { return cube_major(a, b, c); }>},
};

}  // namespace
}  // namespace rdna
