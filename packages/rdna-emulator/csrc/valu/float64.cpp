// f64 arithmetic and 64-bit integers.
#include "valu/float.hpp"

namespace rdna {
namespace {

template <class F>
RDNA_INLINE f64x each(f64x x, F f) {
  f64x result;
  for (int l = 0; l < kLanes; ++l) result[l] = f(x[l], l);
  return result;
}

RDNA_INLINE f64x scale(f64x x, i32x exponent) {
  return each(x, [&](double value, int l) { return __builtin_ldexp(value, exponent[l]); });
}

RDNA_INLINE u64x counted(f64x x) {
  return bits<u64x>((absolute(x) < std::numeric_limits<double>::infinity()) & (x != 0.0));
}
constexpr double kTwo54 = 18014398509481984.0;

RDNA_INLINE i32x split_exponent(f64x x) {
  const i64x tiny = absolute(x) < std::numeric_limits<double>::min() ? i64x(-1) : i64x(0);
  const f64x normal = tiny != 0 ? x * kTwo54 : x;
  const i64x exponent = (bits<i64x>(normal) >> 52 & 0x7ff) - 1022 + (tiny & -54);
  return convert<i32x>(bits<i64x>(counted(x)) & exponent);
}

RDNA_INLINE f64x split_mantissa(f64x x) {
  const f64x normal = absolute(x) < std::numeric_limits<double>::min() ? x * kTwo54 : x;
  const u64x mantissa = (bits<u64x>(normal) & 0x800fffffffffffffull) | 0x3fe0000000000000ull;
  return counted(x) != 0ull ? bits<f64x>(mantissa) : x + x;
}

// A multiply-add of 32-bit factors and a 64-bit addend; the second result is bit 64 of the exact sum.
void mad_u64_u32(Wave& w, const Inst& i) {
  const u64x product =
      convert<u64x>(w.vector_source<u32x>(i, 0)) * convert<u64x>(w.vector_source<u32x>(i, 1));
  const u64x sum = product + w.vector_source64(i, 2);
  const u32 carry = lane_bits(sum < product) & w.exec();
  w.write64(i.dst, sum);
  w.s[i.sdst] = carry;
}

void mad_i64_i32(Wave& w, const Inst& i) {
  const i64x product =
      convert<i64x>(w.vector_source<i32x>(i, 0)) * convert<i64x>(w.vector_source<i32x>(i, 1));
  const i64x addend = bits<i64x>(w.vector_source64(i, 2));
  const u64x sum = bits<u64x>(product) + bits<u64x>(addend);
  // Bit 64 of the sign-extended sum: the carry out of bit 63 added to both signs.
  const u32 carry = lane_bits(sum < bits<u64x>(product)) ^ lane_bits(product < 0) ^ lane_bits(addend < 0);
  const u32 active = w.exec();
  w.write64(i.dst, sum);
  w.s[i.sdst] = carry & active;
}

const Registration registration{
    {"v_add_f64", operation<[](f64x a, f64x b) { return a + b; }>},
    {"v_mul_f64", operation<[](f64x a, f64x b) { return a * b; }>},
    {"v_fma_f64", operation<[](f64x a, f64x b, f64x c) { return fused(a, b, c); }>},
    {"v_min_f64", operation<[](f64x a, f64x b) { return minimum(a, b); }>},
    {"v_max_f64", operation<[](f64x a, f64x b) { return maximum(a, b); }>},
    {"v_trunc_f64", operation<[](f64x a) { return __builtin_elementwise_trunc(a); }>},
    {"v_ceil_f64", operation<[](f64x a) { return __builtin_elementwise_ceil(a); }>},
    {"v_floor_f64", operation<[](f64x a) { return __builtin_elementwise_floor(a); }>},
    {"v_rndne_f64", operation<[](f64x a) { return __builtin_elementwise_roundeven(a); }>},
    {"v_fract_f64", operation<[](f64x a) { return fraction(a); }>},
    {"v_rcp_f64", operation<[](f64x a) { return 1.0 / a; }>},
    {"v_sqrt_f64", operation<[](f64x a) { return __builtin_elementwise_sqrt(a); }>},
    {"v_rsq_f64", operation<[](f64x a) { return 1.0 / __builtin_elementwise_sqrt(a); }>},
    {"v_ldexp_f64", operation<[](f64x a, i32x b) { return scale(a, b); }>},
    {"v_frexp_exp_i32_f64", operation<[](f64x a) { return split_exponent(a); }>},
    {"v_frexp_mant_f64", operation<[](f64x a) { return split_mantissa(a); }>},
    {"v_lshlrev_b64", operation<[](u32x a, u64x b) { return b << convert<u64x>(a & 63u); }>},
    {"v_lshrrev_b64", operation<[](u32x a, u64x b) { return b >> convert<u64x>(a & 63u); }>},
    {"v_ashrrev_i64", operation<[](u32x a, i64x b) { return b >> convert<i64x>(a & 63u); }>},
    {"v_mad_u64_u32", mad_u64_u32},
    {"v_mad_i64_i32", mad_i64_i32},
};

}  // namespace
}  // namespace rdna
