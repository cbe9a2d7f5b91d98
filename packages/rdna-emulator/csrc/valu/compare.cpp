// Comparisons: a mask of the active lanes, to VCC, another scalar or (v_cmpx) EXEC.
#include "valu/float.hpp"

namespace rdna {
namespace {

// Class bits of v_cmp_class, lowest first: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, +0, +denormal,
// +normal, +infinity.
template <class V>
RDNA_INLINE typename Layout<V>::Bits class_bit(V x) {
  using L = Layout<V>;
  using B = typename L::Bits;
  using U = typename L::Unsigned;
  const B value = as_bits(x), size = value & U(~L::kSign);
  const B exponent = size & L::kExponent;
  const auto is_negative = (value & L::kSign) != U(0);
  const auto pick = [&](U negative, U positive) __attribute__((always_inline)) {
    return is_negative ? B(U(1u << negative)) : B(U(1u << positive));
  };
  B result = pick(3, 8);
  result = exponent == U(0) ? pick(4, 7) : result;
  result = size == U(0) ? pick(5, 6) : result;
  result = size == L::kExponent ? pick(2, 9) : result;
  const B nan = (size & L::kQuiet) != U(0) ? B(U(2)) : B(U(1));
  return size > L::kExponent ? nan : result;
}

RDNA_INLINE u32x of_class(f16x x, u32x classes) { return convert<u32x>(class_bit(x)) & classes; }
RDNA_INLINE u32x of_class(f32x x, u32x classes) { return class_bit(x) & classes; }
RDNA_INLINE u32x of_class(f64x x, u32x classes) { return convert<u32x>(class_bit(x)) & classes; }

template <bool value, class T>
void constant(Wave& w, const Inst& i) {
  w.s[i.sdst] = value ? w.exec() : 0u;
}

template <class T>
struct Comparisons {
  static constexpr Body never = constant<false, T>;
  static constexpr Body always = constant<true, T>;
  static constexpr Body less = comparison<[](T a, T b) { return a < b; }>;
  static constexpr Body equal = comparison<[](T a, T b) { return a == b; }>;
  static constexpr Body less_equal = comparison<[](T a, T b) { return a <= b; }>;
  static constexpr Body greater = comparison<[](T a, T b) { return a > b; }>;
  static constexpr Body different = comparison<[](T a, T b) { return a != b; }>;  // floats: also when unordered
  static constexpr Body greater_equal = comparison<[](T a, T b) { return a >= b; }>;
};

template <class T>
struct FloatComparisons : Comparisons<T> {
  static constexpr Body less_greater = comparison<[](T a, T b) { return (a < b) | (a > b); }>;
  static constexpr Body ordered = comparison<[](T a, T b) { return (a == a) & (b == b); }>;
  static constexpr Body unordered = comparison<[](T a, T b) { return (a != a) | (b != b); }>;
  static constexpr Body not_greater_equal = comparison<[](T a, T b) { return (a >= b) == 0; }>;
  static constexpr Body not_less_greater = comparison<[](T a, T b) { return ((a < b) | (a > b)) == 0; }>;
  static constexpr Body not_greater = comparison<[](T a, T b) { return (a > b) == 0; }>;
  static constexpr Body not_less_equal = comparison<[](T a, T b) { return (a <= b) == 0; }>;
  static constexpr Body not_less = comparison<[](T a, T b) { return (a < b) == 0; }>;
  static constexpr Body of_classes = comparison<[](T a, u32x b) { return of_class(a, b); }>;
};

#define RDNA_COMPARISONS(prefix, type, T)                   \
  {prefix "_f_" type, Comparisons<T>::never},               \
      {prefix "_lt_" type, Comparisons<T>::less},           \
      {prefix "_eq_" type, Comparisons<T>::equal},          \
      {prefix "_le_" type, Comparisons<T>::less_equal},     \
      {prefix "_gt_" type, Comparisons<T>::greater},        \
      {prefix "_ge_" type, Comparisons<T>::greater_equal},  \
      {prefix "_t_" type, Comparisons<T>::always}

#define RDNA_INTEGER_COMPARISONS(type, T)                \
  RDNA_COMPARISONS("v_cmp", type, T),                    \
      {"v_cmp_ne_" type, Comparisons<T>::different},     \
      RDNA_COMPARISONS("v_cmpx", type, T),               \
      {"v_cmpx_ne_" type, Comparisons<T>::different}

#define RDNA_FLOAT_COMPARISONS_OF(prefix, type, T)                   \
  RDNA_COMPARISONS(prefix, type, T),                                 \
      {prefix "_lg_" type, FloatComparisons<T>::less_greater},       \
      {prefix "_o_" type, FloatComparisons<T>::ordered},             \
      {prefix "_u_" type, FloatComparisons<T>::unordered},           \
      {prefix "_nge_" type, FloatComparisons<T>::not_greater_equal}, \
      {prefix "_nlg_" type, FloatComparisons<T>::not_less_greater},  \
      {prefix "_ngt_" type, FloatComparisons<T>::not_greater},       \
      {prefix "_nle_" type, FloatComparisons<T>::not_less_equal},    \
      {prefix "_neq_" type, FloatComparisons<T>::different},         \
      {prefix "_nlt_" type, FloatComparisons<T>::not_less},          \
      {prefix "_class_" type, FloatComparisons<T>::of_classes}

#define RDNA_FLOAT_COMPARISONS(type, T) \
  RDNA_FLOAT_COMPARISONS_OF("v_cmp", type, T), RDNA_FLOAT_COMPARISONS_OF("v_cmpx", type, T)

const Registration registration{
    RDNA_INTEGER_COMPARISONS("i16", i16x), RDNA_INTEGER_COMPARISONS("u16", u16x),
    RDNA_INTEGER_COMPARISONS("i32", i32x), RDNA_INTEGER_COMPARISONS("u32", u32x),
    RDNA_INTEGER_COMPARISONS("i64", i64x), RDNA_INTEGER_COMPARISONS("u64", u64x),
    RDNA_FLOAT_COMPARISONS("f16", f16x),   RDNA_FLOAT_COMPARISONS("f32", f32x),
    RDNA_FLOAT_COMPARISONS("f64", f64x),
};

}  // namespace
}  // namespace rdna
