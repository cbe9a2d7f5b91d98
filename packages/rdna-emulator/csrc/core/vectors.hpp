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
#define RDNA_LAMBDA_INLINE __attribute__((always_inline))

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

constexpr u32x kLaneBit = {
    1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6, 1u << 7,
    1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

// All ones in the lanes whose bit is set.
RDNA_INLINE u32x lane_mask(u32 mask) {
  return bits<u32x>((kLaneBit & mask) != 0u);
}

// One bit a lane: set where the lane of a comparison's result is not zero.
template <class Condition>
RDNA_INLINE u32 lane_bits(Condition lanes) {
  return bits<u32>(__builtin_convertvector(lanes, Lanes<bool>));
}

}  // namespace rdna
