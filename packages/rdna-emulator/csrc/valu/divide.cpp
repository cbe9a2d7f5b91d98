// The three helpers of IEEE division: v_div_scale moves numerator and denominator into a safe range and says in a lane mask
// whether the quotient has to be moved back, v_div_fmas does that in the last multiply-add, v_div_fixup sets special cases.
#include "valu/float.hpp"

namespace rdna {
namespace {

template <class V>
struct Limits {
  static constexpr bool kSingle = sizeof(Element<V>) == 4;
  using Float = Element<V>;
  static constexpr Float kUp = kSingle ? Float(0x1p64) : Float(0x1p128);
  static constexpr Float kDown = kSingle ? Float(0x1p-64) : Float(0x1p-128);
  static constexpr int kNearMax = kSingle ? 96 : 768;       // exponent of the quotient from which it may overflow
  static constexpr int kTinyNumerator = kSingle ? 23 : 53;  // biased exponent
  static constexpr int kUnderflow = kSingle ? -150 : -1075;
  static constexpr int kBias = kSingle ? 127 : 1023;
  static constexpr Float kNormal = std::numeric_limits<Float>::min();
  static constexpr Float kStep = std::numeric_limits<Float>::denorm_min();
};

template <class V>
using Signed = Like<V, std::make_signed_t<typename Layout<V>::Unsigned>>;

template <class V>
RDNA_INLINE Signed<V> biased_exponent(V x) {
  using L = Layout<V>;
  return bits<Signed<V>>((as_bits(x) & L::kExponent) >> typename L::Unsigned(L::kMantissaBits));
}

template <class V>
void div_scale(Wave& w, const Inst& i) {
  using K = Limits<V>;
  using M = Signed<V>;
  const V value = load<V>(w, i, 0), denominator = load<V>(w, i, 1), numerator = load<V>(w, i, 2);
  const M n = biased_exponent(numerator), d = biased_exponent(denominator);
  const V quotient = absolute(numerator / denominator), size = absolute(denominator);
  const M zero = (numerator == 0) | (denominator == 0);
  const M huge_quotient = (n - d) >= K::kNearMax;
  const M tiny_denominator = d == 0;
  const M tiny_quotient = quotient < K::kNormal;
  const M tiny_reciprocal = (size > V(1 / K::kNormal)) & (size < std::numeric_limits<Element<V>>::infinity());
  const V scaled_denominator_up = value == denominator ? value * K::kUp : value;
  const V scaled_denominator_down = value == denominator ? value * K::kDown : value;
  const V scaled_numerator = value == numerator ? value * K::kUp : value;
  // From the last case to the first, which wins.
  V result = n <= K::kTinyNumerator ? value * K::kUp : value;
  result = tiny_quotient != 0 ? scaled_numerator : result;
  result = tiny_reciprocal != 0 ? value * K::kDown : result;
  result = (tiny_reciprocal & tiny_quotient) != 0 ? scaled_denominator_down : result;
  result = tiny_denominator != 0 ? value * K::kUp : result;
  result = huge_quotient != 0 ? scaled_denominator_up : result;
  result = zero != 0 ? V(std::numeric_limits<Element<V>>::quiet_NaN()) : result;
  const M moved = ~zero & (huge_quotient | (tiny_quotient & ~tiny_denominator));
  const u32 active = w.exec();
  store(w, i, result);
  w.s[i.sdst] = lane_bits(moved) & active;
}

template <class V>
struct Sum {
  V value, error;
};
template <class V>
RDNA_INLINE Sum<V> two_sum(V a, V b) {
  const V sum = a + b, back = sum - a;
  return {sum, (a - (sum - back)) + (b - back)};
}

// (a b + c) scale, rounded once although the result may be a denormal: the error of the multiply-add (Boldo and Muller, "Exact
// and approximated error of the FMA") decides where the scaled value is a tie.
template <class V>
RDNA_INLINE V scaled_fused(V a, V b, V c) {
  using K = Limits<V>;
  using F = Element<V>;
  const V near = fused(a, b, c);
  const auto up = biased_exponent(c) > K::kBias;
  const V scale = up ? V(K::kUp) : V(K::kDown), back = up ? V(K::kDown) : V(K::kUp);
  const V product = a * b, product_error = fused(a, b, negated(product));
  const Sum<V> first = two_sum(c, product_error);
  const Sum<V> second = two_sum(product, first.value);
  const V error = ((second.value - near) + second.error) + first.error;
  const V result = near * scale;
  const V rest = near - result * back;
  const V half = V(K::kStep * K::kUp * F(0.5));
  const V above = result + K::kStep, below = result - K::kStep;
  const V corrected = ((rest == half) & (error > 0)) ? above : result;
  return ((rest == negated(half)) & (error < 0)) ? below : corrected;
}

template <class V>
void div_fmas(Wave& w, const Inst& i) {
  const V a = load<V>(w, i, 0), b = load<V>(w, i, 1), c = load<V>(w, i, 2);
  V result = fused(a, b, c);
  const u32 moved = w.s[kVcc] & w.exec();
  if (moved != 0) {
    const V scaled = scaled_fused(a, b, c);
    result = convert<Signed<V>>(bits<i32x>(lane_mask(moved))) != 0 ? scaled : result;
  }
  store(w, i, result);
}

template <class V>
RDNA_INLINE V div_fixup(V value, V denominator, V numerator) {
  using L = Layout<V>;
  using F = Element<V>;
  const V infinity = bits<V>(typename L::Bits(L::kExponent));  // the library's limits do not know _Float16
  const auto sign = (as_bits(denominator) ^ as_bits(numerator)) & L::kSign;
  const V d = absolute(denominator), n = absolute(numerator);
  // An intermediate that overflows leaves NaN: so does the quotient of ordinary numbers.
  V result = value == value ? absolute(value) : n > d ? infinity : V(F(0));
  if constexpr (sizeof(F) != 2) {
    const auto too_small = (biased_exponent(numerator) - biased_exponent(denominator)) < Limits<V>::kUnderflow;
    result = too_small ? V(F(0)) : result;
  }
  result = ((d == infinity) | (n == F(0))) ? V(F(0)) : result;
  result = ((d == F(0)) | (n == infinity)) ? infinity : result;
  result = bits<V>(as_bits(result) | sign);
  const auto undefined = ((d == F(0)) & (n == F(0))) | ((d == infinity) & (n == infinity));
  result = undefined ? bits<V>(typename L::Bits(typename L::Unsigned(L::kSign | L::kExponent | L::kQuiet))) : result;
  result = denominator != denominator ? bits<V>(as_bits(denominator) | L::kQuiet) : result;
  return numerator != numerator ? bits<V>(as_bits(numerator) | L::kQuiet) : result;
}

const Registration registration{
    {"v_div_scale_f32", div_scale<f32x>},
    {"v_div_scale_f64", div_scale<f64x>},
    {"v_div_fmas_f32", div_fmas<f32x>},
    {"v_div_fmas_f64", div_fmas<f64x>},
    {"v_div_fixup_f16", operation<[](f16x a, f16x b, f16x c) { return div_fixup(a, b, c); }>},
    {"v_div_fixup_f32", operation<[](f32x a, f32x b, f32x c) { return div_fixup(a, b, c); }>},
    {"v_div_fixup_f64", operation<[](f64x a, f64x b, f64x c) { return div_fixup(a, b, c); }>},
};

}  // namespace
}  // namespace rdna
