// SALU floats of gfx11.5. Nearest even, denormals kept, as MODE says on every launch that is accepted.
#include <cmath>

#include "core/machine.hpp"

namespace rdna {
namespace {

float as_float(u32 value) { return __builtin_bit_cast(float, value); }
u32 as_bits(float value) { return __builtin_bit_cast(u32, value); }
float half_to_float(u32 value) { return static_cast<float>(__builtin_bit_cast(f16, static_cast<u16>(value))); }
u32 half_bits(f16 value) { return __builtin_bit_cast(u16, value); }

template <auto F>
void unary_f32(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, as_bits(F(as_float(w.scalar_source(i, 0)))));
}
template <auto F>
void binary_f32(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, as_bits(F(as_float(w.scalar_source(i, 0)), as_float(w.scalar_source(i, 1)))));
}
// One f16 operation: float holds the exact inputs, and its result rounds once more without harm.
template <auto F>
void unary_f16(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, half_bits(static_cast<f16>(F(half_to_float(w.scalar_source(i, 0))))));
}
template <auto F>
void binary_f16(Wave& w, const Inst& i) {
  const float a = half_to_float(w.scalar_source(i, 0)), b = half_to_float(w.scalar_source(i, 1));
  w.write_scalar(i.dst, half_bits(static_cast<f16>(F(a, b))));
}

constexpr auto kAdd = [](float a, float b) { return a + b; };
constexpr auto kSub = [](float a, float b) { return a - b; };
constexpr auto kMul = [](float a, float b) { return a * b; };

// Minimum and maximum: a NaN loses against a number, a signalling one wins (MODE.IEEE), and -0 is below +0. They work on
// the bits, for a conversion of f16 would quiet its NaNs.
template <bool kMaximum, u32 kInfinity, u32 kQuiet, auto kValue>
void extreme(Wave& w, const Inst& i) {
  constexpr u32 kSign = kInfinity + (kQuiet << 1);
  constexpr u32 kMagnitude = kSign - 1;
  const u32 a = w.scalar_source(i, 0) & (kSign | kMagnitude), b = w.scalar_source(i, 1) & (kSign | kMagnitude);
  const auto is_nan = [](u32 bits) { return (bits & kMagnitude) > kInfinity; };
  u32 result;
  if (is_nan(a) && !(a & kQuiet)) {
    result = a | kQuiet;
  } else if (is_nan(b) && !(b & kQuiet)) {
    result = b | kQuiet;
  } else if (is_nan(b)) {
    result = a;
  } else if (is_nan(a)) {
    result = b;
  } else if (kValue(a) == kValue(b)) {
    result = (a & kSign) != 0 == kMaximum ? b : a;
  } else {
    result = (kValue(a) < kValue(b)) == kMaximum ? b : a;
  }
  w.write_scalar(i.dst, result);
}

void fma_f32(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, as_bits(std::fma(as_float(w.scalar_source(i, 0)), as_float(w.scalar_source(i, 1)),
                                         as_float(w.scalar_source(i, 2)))));
}
void fmac_f32(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, as_bits(std::fma(as_float(w.scalar_source(i, 0)), as_float(w.scalar_source(i, 1)),
                                         as_float(w.s[i.dst]))));
}
// The product is exact in double, and 53 bits leave no half-way case of the sum that 11 bits would round wrongly.
void fmac_f16(Wave& w, const Inst& i) {
  const double product = double{half_to_float(w.scalar_source(i, 0))} * half_to_float(w.scalar_source(i, 1));
  w.write_scalar(i.dst, half_bits(static_cast<f16>(product + half_to_float(w.s[i.dst]))));
}

u32 to_i32(float value) {
  if (std::isnan(value)) return 0;
  if (value >= 2147483648.0f) return 0x7fffffffu;
  if (value <= -2147483648.0f) return 0x80000000u;
  return static_cast<u32>(static_cast<i32>(value));
}
u32 to_u32(float value) {
  if (!(value > 0.0f)) return 0;
  return value >= 4294967296.0f ? 0xffffffffu : static_cast<u32>(value);
}

// Truncated; what is too large for f16 becomes its largest number.
u32 half_toward_zero(float value) {
  const f16 nearest = static_cast<f16>(value);
  const u32 result = half_bits(nearest);
  if (std::isnan(value) || std::fabs(static_cast<float>(nearest)) <= std::fabs(value)) return result;
  return result - 1;
}

void cvt_pk_rtz(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, half_toward_zero(as_float(w.scalar_source(i, 0))) |
                            half_toward_zero(as_float(w.scalar_source(i, 1))) << 16);
}

template <auto F>
void convert32(Wave& w, const Inst& i) {
  w.write_scalar(i.dst, F(w.scalar_source(i, 0)));
}

const Registration kFloats({
    {"s_add_f32", binary_f32<kAdd>},
    {"s_sub_f32", binary_f32<kSub>},
    {"s_mul_f32", binary_f32<kMul>},
    {"s_min_f32", extreme<false, 0x7f800000, 0x400000, as_float>},
    {"s_max_f32", extreme<true, 0x7f800000, 0x400000, as_float>},
    {"s_fmaak_f32", fma_f32},
    {"s_fmamk_f32", fma_f32},
    {"s_fmac_f32", fmac_f32},
    {"s_ceil_f32", unary_f32<[](float a) { return std::ceil(a); }>},
    {"s_floor_f32", unary_f32<[](float a) { return std::floor(a); }>},
    {"s_trunc_f32", unary_f32<[](float a) { return std::trunc(a); }>},
    {"s_rndne_f32", unary_f32<[](float a) { return __builtin_roundevenf(a); }>},
    {"s_add_f16", binary_f16<kAdd>},
    {"s_sub_f16", binary_f16<kSub>},
    {"s_mul_f16", binary_f16<kMul>},
    {"s_min_f16", extreme<false, 0x7c00, 0x200, half_to_float>},
    {"s_max_f16", extreme<true, 0x7c00, 0x200, half_to_float>},
    {"s_fmac_f16", fmac_f16},
    {"s_ceil_f16", unary_f16<[](float a) { return std::ceil(a); }>},
    {"s_floor_f16", unary_f16<[](float a) { return std::floor(a); }>},
    {"s_trunc_f16", unary_f16<[](float a) { return std::trunc(a); }>},
    {"s_rndne_f16", unary_f16<[](float a) { return __builtin_roundevenf(a); }>},
    {"s_cvt_f32_i32", convert32<[](u32 a) { return as_bits(static_cast<float>(static_cast<i32>(a))); }>},
    {"s_cvt_f32_u32", convert32<[](u32 a) { return as_bits(static_cast<float>(a)); }>},
    {"s_cvt_i32_f32", convert32<[](u32 a) { return to_i32(as_float(a)); }>},
    {"s_cvt_u32_f32", convert32<[](u32 a) { return to_u32(as_float(a)); }>},
    {"s_cvt_f16_f32", convert32<[](u32 a) { return half_bits(static_cast<f16>(as_float(a))); }>},
    {"s_cvt_f32_f16", convert32<[](u32 a) { return as_bits(half_to_float(a)); }>},
    {"s_cvt_hi_f32_f16", convert32<[](u32 a) { return as_bits(half_to_float(a >> 16)); }>},
    {"s_cvt_pk_rtz_f16_f32", cvt_pk_rtz},
});

}  // namespace
}  // namespace rdna
