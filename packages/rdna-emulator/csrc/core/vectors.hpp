// Vector types of one wave: 32 lanes, which the compiler splits into host registers.
#pragma once
#include <cstdint>
#include <cstring>

namespace rdna {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f16 = _Float16;

constexpr int kLanes = 32;

// Vectors are wider than a host register: helpers that pass them must be inlined.
#define RDNA_INLINE [[gnu::always_inline]] inline

template <class T>
using Lanes = T __attribute__((ext_vector_type(kLanes)));

using u32x = Lanes<u32>;
using i32x = Lanes<i32>;
using f32x = Lanes<float>;
using u64x = Lanes<u64>;
using i64x = Lanes<i64>;
using f64x = Lanes<double>;
using u16x = Lanes<u16>;
using i16x = Lanes<i16>;
using f16x = Lanes<f16>;

template <class To, class From>
RDNA_INLINE To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

template <class To, class From>
RDNA_INLINE To convert(From value) {
  return __builtin_convertvector(value, To);
}

// All ones in the lanes whose bit is set.
RDNA_INLINE u32x lane_mask(u32 mask) {
  u32x select;
  for (int lane = 0; lane < kLanes; ++lane) select[lane] = 1u << lane;
  return bits<u32x>((select & mask) != 0u);
}

// One bit a lane: set where the 32-bit lane is not zero.
RDNA_INLINE u32 lane_bits(u32x lanes) {
  u32x select;
  for (int lane = 0; lane < kLanes; ++lane) select[lane] = 1u << lane;
  return __builtin_reduce_or(bits<u32x>(lanes != 0u) & select);
}

}  // namespace rdna
