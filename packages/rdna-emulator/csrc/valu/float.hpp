// Floating-point helpers shared by the bodies, over vectors of any length.
#pragma once
#include <limits>

#include "valu/lanes.hpp"

namespace rdna {

template <class V>
using Element = std::remove_cvref_t<decltype(std::declval<V>()[0])>;

template <class V, class T>
using Like = T __attribute__((ext_vector_type(sizeof(V) / sizeof(Element<V>))));

template <std::size_t>
struct UnsignedOfSize;
template <>
struct UnsignedOfSize<2> {
  using type = u16;
};
template <>
struct UnsignedOfSize<4> {
  using type = u32;
};
template <>
struct UnsignedOfSize<8> {
  using type = u64;
};

// The bit layout of a floating-point vector.
template <class V>
struct Layout {
  using Float = Element<V>;
  using Unsigned = typename UnsignedOfSize<sizeof(Float)>::type;
  using Bits = Like<V, Unsigned>;
  static constexpr int kMantissaBits = sizeof(Float) == 2 ? 10 : sizeof(Float) == 4 ? 23 : 52;
  static constexpr Unsigned kSign = Unsigned(Unsigned(1) << (8 * sizeof(Float) - 1));
  static constexpr Unsigned kQuiet = Unsigned(Unsigned(1) << (kMantissaBits - 1));
  static constexpr Unsigned kMantissa = Unsigned((Unsigned(1) << kMantissaBits) - 1);
  static constexpr Unsigned kExponent = Unsigned(Unsigned(~kSign) & Unsigned(~kMantissa));
};

template <class V>
RDNA_INLINE typename Layout<V>::Bits as_bits(V x) {
  return bits<typename Layout<V>::Bits>(x);
}

template <class V>
RDNA_INLINE V absolute(V x) {
  using L = Layout<V>;
  return bits<V>(as_bits(x) & typename L::Unsigned(~L::kSign));
}

template <class V>
RDNA_INLINE V negated(V x) {
  return bits<V>(as_bits(x) ^ Layout<V>::kSign);
}

template <class V>
RDNA_INLINE bool any(V condition) {
  return __builtin_reduce_or(condition) != 0;
}

// IEEE mode: a signalling NaN wins and becomes quiet, the other operand wins over a quiet NaN.
template <class V>
RDNA_INLINE V choose_number(V a, V b, V result) {
  using L = Layout<V>;
  using B = typename L::Bits;
  const B signalling_a = bits<B>(a != a) & ((as_bits(a) & L::kQuiet) == B(0) ? B(~typename L::Unsigned(0)) : B(0));
  const B signalling_b = bits<B>(b != b) & ((as_bits(b) & L::kQuiet) == B(0) ? B(~typename L::Unsigned(0)) : B(0));
  result = a != a ? b : result;
  result = b != b ? a : result;
  result = signalling_b != B(0) ? bits<V>(as_bits(b) | L::kQuiet) : result;
  return signalling_a != B(0) ? bits<V>(as_bits(a) | L::kQuiet) : result;
}

// -0 < +0 in both.
template <class V>
RDNA_INLINE V minimum(V a, V b) {
  const V result = a == b ? bits<V>(as_bits(a) | as_bits(b)) : a < b ? a : b;
  if (!any((a != a) | (b != b))) return result;
  return choose_number(a, b, result);
}

template <class V>
RDNA_INLINE V maximum(V a, V b) {
  const V result = a == b ? bits<V>(as_bits(a) & as_bits(b)) : a > b ? a : b;
  if (!any((a != a) | (b != b))) return result;
  return choose_number(a, b, result);
}

template <class V>
RDNA_INLINE V median(V a, V b, V c) {
  const V low = minimum(minimum(a, b), c), high = maximum(maximum(a, b), c);
  const V middle = high == a ? maximum(b, c) : high == b ? maximum(a, c) : maximum(a, b);
  return ((a != a) | (b != b) | (c != c)) ? low : middle;
}

template <class V>
RDNA_INLINE V fused(V a, V b, V c) {
  return __builtin_elementwise_fma(a, b, c);
}

// f16 fused multiply-add with one rounding. The product is exact in f32; the sum is rounded to odd there, which makes the
// second rounding to f16 the only one (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums").
template <class V>
RDNA_INLINE V fused_half(V a, V b, V c) {
  using F = Like<V, float>;
  using U = Like<V, u32>;
  const F product = convert<F>(a) * convert<F>(b), addend = convert<F>(c);
  const F sum = product + addend;
  const F back = sum - product;
  const F error = (product - (sum - back)) + (addend - back);
  const U inexact = bits<U>((error < 0.0f) | (error > 0.0f));
  const U same_sign = bits<U>(error) ^ bits<U>(sum);  // top bit clear where the error points away from zero
  const U step = (same_sign >> 31) == 0u ? U(1u) : U(~0u);
  const U even = (bits<U>(sum) & 1u) - 1u;  // all ones where the last bit is clear
  return convert<V>(bits<F>(bits<U>(sum) + (step & inexact & even)));
}

RDNA_INLINE u16x to_brain(f32x x) {  // bfloat16, to nearest even
  const u32x value = bits<u32x>(x);
  const u32x rounded = (value + 0x7fffu + ((value >> 16) & 1u)) >> 16;
  return convert<u16x>(x == x ? rounded : (value >> 16) | 0x40u);
}

template <class V>
RDNA_INLINE V fraction(V x) {  // below 1 even where x - floor(x) rounds up to it
  using L = Layout<V>;
  using U = typename L::Unsigned;
  constexpr U kOne = U(L::kExponent >> 1) & L::kExponent;
  const V below_one = bits<V>(typename L::Bits(U(kOne - 1)));
  const V result = x - __builtin_elementwise_floor(x);
  return result > below_one ? below_one : result;
}

// The saturating conversion of the hardware: toward zero, NaN gives 0.
template <class To, class V>
RDNA_INLINE Like<V, To> to_integer(V x) {
  using F = Element<V>;
  using Limits = std::numeric_limits<To>;
  // Powers of two, so exact: the first value above the range; the lowest value of the range.
  constexpr F kAbove = F(To(1) << (Limits::digits - 1)) * F(2);
  constexpr F kLowest = Limits::is_signed ? -kAbove : F(0);
  const V inside = ((x < kAbove) & (x >= kLowest)) ? x : V(F(0));
  Like<V, To> result = convert<Like<V, To>>(inside);
  using Mask = decltype(x < x);
  const auto select = [](Mask m) __attribute__((always_inline)) { return convert<Like<V, To>>(m) != To(0); };
  result = select(x >= kAbove) ? Like<V, To>(Limits::max()) : result;
  return select(x < kLowest) ? Like<V, To>(Limits::min()) : result;
}

}  // namespace rdna
