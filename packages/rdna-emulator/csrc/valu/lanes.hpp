// Builders of VALU bodies: an operation over whole waves becomes a handler that loads, applies and stores.
#pragma once
#include <type_traits>

#include "core/machine.hpp"
#if __AVX2__
#include <immintrin.h>
#endif

namespace rdna {

// Both halves of 32 registers, lowest first: what the packed operations work on.
template <class T>
using Halves = T __attribute__((ext_vector_type(2 * kLanes)));
using u16h = Halves<u16>;
using i16h = Halves<i16>;
using f16h = Halves<f16>;

constexpr u32x kLaneIndex = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// Lane l of the result is lane index[l] of the value.
RDNA_INLINE u32x permute(u32x value, u32x index) {
#if __AVX512F__
  const __m512i low = _mm512_load_si512(&value);
  const __m512i high = _mm512_load_si512(reinterpret_cast<const char*>(&value) + 64);
  const auto* selectors = reinterpret_cast<const char*>(&index);
  u32x result;
  _mm512_store_si512(&result, _mm512_permutex2var_epi32(low, _mm512_load_si512(selectors), high));
  _mm512_store_si512(reinterpret_cast<char*>(&result) + 64,
                     _mm512_permutex2var_epi32(low, _mm512_load_si512(selectors + 64), high));
  return result;
#else
  alignas(128) u32 from[kLanes], at[kLanes], to[kLanes];
  std::memcpy(from, &value, 128);
  index &= 31u;
  std::memcpy(at, &index, 128);
  for (int l = 0; l < kLanes; ++l) to[l] = from[at[l]];
  u32x result;
  std::memcpy(&result, to, 128);
  return result;
#endif
}

// A scalar operand that a body reads itself.
inline u32 scalar_operand(const Wave& w, const Operand& operand) {
  return operand.kind == OperandKind::constant ? static_cast<u32>(operand.value) : w.s[operand.reg];
}

template <class T>
RDNA_INLINE T load(const Wave& w, const Inst& i, int k) {
  if constexpr (sizeof(T) == 4 * kLanes) {
    return w.vector_source<T>(i, k);
  } else if constexpr (sizeof(T) == 2 * kLanes) {
    return bits<T>(w.vector_source16(i, k));
  } else {
    static_assert(sizeof(T) == 8 * kLanes);
    return bits<T>(w.vector_source64(i, k));
  }
}

template <class T>
RDNA_INLINE void store(Wave& w, const Inst& i, T value) {
  if constexpr (sizeof(T) == 4 * kLanes) {
    w.write(i.dst, value);
  } else if constexpr (sizeof(T) == 2 * kLanes) {
    w.write16(i, value);
  } else {
    w.write64(i.dst, value);
  }
}

namespace detail {

template <class Result, class Lambda, class... Sources, std::size_t... K>
RDNA_INLINE Result apply(Wave& w, const Inst& i, Result (Lambda::*)(Sources...) const, Lambda f,
                         std::index_sequence<K...>) {
  return f(load<Sources>(w, i, K)...);
}

template <class Result, class Lambda, class... Sources>
RDNA_INLINE Result apply(Wave& w, const Inst& i, Result (Lambda::*call)(Sources...) const, Lambda f) {
  return apply(w, i, call, f, std::index_sequence_for<Sources...>{});
}

}  // namespace detail

// The body of result = F(sources): widths follow from F's types.
template <auto F>
void operation(Wave& w, const Inst& i) {
  store(w, i, detail::apply(w, i, &decltype(F)::operator(), F));
}

// The body of a comparison: a mask to the scalar `sdst`, zero in inactive lanes.
template <auto F>
void comparison(Wave& w, const Inst& i) {
  w.s[i.sdst] = lane_bits(detail::apply(w, i, &decltype(F)::operator(), F)) & w.exec();
}

}  // namespace rdna
