// f64 arithmetic and 64-bit integers.
#include <iterator>

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

// The first 1201 binary places of 2 / pi, highest first.
constexpr u64 kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000, 0x0000000000000000};

// 53 places of 2 / pi from `segment` * 53 on, later ones for large x: what reduces an argument of sin or cos.
RDNA_INLINE f64x two_over_pi(f64x x, u32x segment) {
  return each(x, [&](double value, int l) {
    const u32 exponent = static_cast<u32>(bits<u64>(value) >> 52) & 0x7ff;
    const u32 start = (segment[l] & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    if (start >= 1201) return 0.0;
    const u32 word = start / 64, shift = start % 64;
    const unsigned __int128 places = static_cast<unsigned __int128>(kTwoOverPi[word]) << 64 |
                                     (word + 1 < std::size(kTwoOverPi) ? kTwoOverPi[word + 1] : 0);
    const u64 digits = static_cast<u64>(places << shift >> 75);
    return __builtin_ldexp(static_cast<double>(digits), -53 - static_cast<int>(start) + (exponent >= 1968 ? 128 : 0));
  });
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
    {"v_trig_preop_f64", operation<[](f64x a, u32x b) { return two_over_pi(a, b); }>},
    {"v_lshlrev_b64", operation<[](u32x a, u64x b) { return b << convert<u64x>(a & 63u); }>},
    {"v_lshrrev_b64", operation<[](u32x a, u64x b) { return b >> convert<u64x>(a & 63u); }>},
    {"v_ashrrev_i64", operation<[](u32x a, i64x b) { return b >> convert<i64x>(a & 63u); }>},
    {"v_mad_u64_u32", mad_u64_u32},
    {"v_mad_i64_i32", mad_i64_i32},
};

}  // namespace
}  // namespace rdna
