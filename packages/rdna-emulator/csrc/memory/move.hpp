// Data between a wave's registers and host memory. Lane l's bytes are at base + delta[l]; the caller has checked that the
// active lanes may be accessed there.
#pragma once
#include <bit>

#include "core/machine.hpp"

namespace rdna {

// How the lanes' places lie to each other. All but `apart` have all lanes active.
enum class LaneLayout : u8 {
  apart,
  in_twins,   // lanes 2n and 2n + 1 have one place
  in_eights,  // lanes 8n to 8n + 7 lie end to end
  in_one,     // all of them do
};

enum class Half : u8 { none, low, high };  // of a register, which keeps its other half

struct LoadKind {
  u32 bytes;
  bool sign = false;
  Half half = Half::none;
};

struct StoreKind {
  u32 bytes;
  bool high = false;  // from the upper half of the register
};

namespace detail {

using Quad = u32 __attribute__((ext_vector_type(4)));
using Sixteen = u32 __attribute__((ext_vector_type(16)));

template <class F>
RDNA_INLINE void for_lanes(u32 active, F f) {
  if (active == ~0u) {
#pragma clang loop unroll(full)
    for (int l = 0; l < kLanes; ++l) f(l);
  } else {
    for (; active; active &= active - 1) f(std::countr_zero(active));
  }
}

template <class T>
RDNA_INLINE T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

RDNA_INLINE u32x even(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                                 44, 46, 48, 50, 52, 54, 56, 58, 60, 62);
}
RDNA_INLINE u32x odd(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                 45, 47, 49, 51, 53, 55, 57, 59, 61, 63);
}
RDNA_INLINE u32x zip(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11,
                                 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
RDNA_INLINE u32x zip_low(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11,
                                 43, 12, 44, 13, 45, 14, 46, 15, 47);
}
RDNA_INLINE u32x zip_high(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57,
                                 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}

RDNA_INLINE Quad unpack_low(Quad a, Quad b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
RDNA_INLINE Quad unpack_high(Quad a, Quad b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
RDNA_INLINE Quad unpack_low_pairs(Quad a, Quad b) { return __builtin_shufflevector(a, b, 0, 1, 4, 5); }
RDNA_INLINE Quad unpack_high_pairs(Quad a, Quad b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7); }
RDNA_INLINE Sixteen unpack_low(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
RDNA_INLINE Sixteen unpack_high(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
RDNA_INLINE Sixteen unpack_low_pairs(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
RDNA_INLINE Sixteen unpack_high_pairs(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
RDNA_INLINE Sixteen joined(Quad a, Quad b, Quad c, Quad d) {
  const auto low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// Dword k of eight quads, each for two lanes.
template <int k>
RDNA_INLINE Sixteen each_twice(Sixteen low, Sixteen high) {
  return __builtin_shufflevector(low, high, k, k, k + 4, k + 4, k + 8, k + 8, k + 12, k + 12, k + 16, k + 16, k + 20, k + 20,
                                 k + 24, k + 24, k + 28, k + 28);
}

// Of 4 x 4 dwords, or of as many such blocks as a vector holds.
template <class Row>
RDNA_INLINE void transpose(Row (&rows)[4]) {
  const Row a = unpack_low(rows[0], rows[1]), b = unpack_high(rows[0], rows[1]);
  const Row c = unpack_low(rows[2], rows[3]), d = unpack_high(rows[2], rows[3]);
  rows[0] = unpack_low_pairs(a, c);
  rows[1] = unpack_high_pairs(a, c);
  rows[2] = unpack_low_pairs(b, d);
  rows[3] = unpack_high_pairs(b, d);
}

}  // namespace detail

template <LoadKind kKind>
RDNA_INLINE void load_lanes(Wave& w, u32 row, u32 active, const u8* base, const i32* delta, LaneLayout layout) {
  using namespace detail;
  if constexpr (kKind.bytes < 4) {
    u32* to = w.v[row];
    for_lanes(active, [&](int l) {
      u32 value;
      if constexpr (kKind.bytes == 1) {
        value = kKind.sign ? static_cast<u32>(static_cast<i8>(base[delta[l]])) : base[delta[l]];
      } else {
        const u16 bits = read<u16>(base + delta[l]);
        value = kKind.sign ? static_cast<u32>(static_cast<i16>(bits)) : bits;
      }
      if constexpr (kKind.half == Half::low) value = (to[l] & 0xffff0000u) | (value & 0xffffu);
      if constexpr (kKind.half == Half::high) value = (to[l] & 0xffffu) | value << 16;
      to[l] = value;
    });
  } else if constexpr (kKind.bytes == 4) {
    if (layout == LaneLayout::in_one) {
      std::memcpy(w.v[row], base, 128);
    } else {
      u32* to = w.v[row];
      for_lanes(active, [&](int l) { to[l] = read<u32>(base + delta[l]); });
    }
  } else if constexpr (kKind.bytes == 8) {
    if (layout == LaneLayout::in_one) {
      const u32x a = read<u32x>(base), b = read<u32x>(base + 128);
      w.row(row) = even(a, b);
      w.row(row + 1) = odd(a, b);
    } else {
      u32* to = w.v[row];
      for_lanes(active, [&](int l) {
        const u64 value = read<u64>(base + delta[l]);
        to[l] = static_cast<u32>(value);
        to[l + kLanes] = static_cast<u32>(value >> 32);
      });
    }
  } else if constexpr (kKind.bytes == 16) {
    if (layout >= LaneLayout::in_eights) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 16) {
        u32x eights[2];
        for (int k = 0; k < 2; ++k) eights[k] = read<u32x>(base + delta[l + 8 * k]);
        const u32x x = even(eights[0], eights[1]), y = odd(eights[0], eights[1]);
        const u32x registers[2] = {even(x, y), odd(x, y)};  // 0 and 1, 2 and 3
        std::memcpy(&w.v[row][l], &registers[0], 64);
        std::memcpy(&w.v[row + 1][l], reinterpret_cast<const u8*>(&registers[0]) + 64, 64);
        std::memcpy(&w.v[row + 2][l], &registers[1], 64);
        std::memcpy(&w.v[row + 3][l], reinterpret_cast<const u8*>(&registers[1]) + 64, 64);
      }
    } else if (layout == LaneLayout::in_twins) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 16) {
        const auto twins = [&](int n) __attribute__((always_inline)) { return read<Quad>(base + delta[l + 2 * n]); };
        const auto fours = [&](int n) __attribute__((always_inline)) {
          return joined(twins(n), twins(n + 1), twins(n + 2), twins(n + 3));
        };
        const Sixteen low = fours(0), high = fours(4);
        const Sixteen registers[4] = {each_twice<0>(low, high), each_twice<1>(low, high), each_twice<2>(low, high),
                                      each_twice<3>(low, high)};
        for (int k = 0; k < 4; ++k) std::memcpy(&w.v[row + k][l], &registers[k], 64);
      }
    } else if (active == ~0u) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 16) {
        Sixteen lanes[4];  // k, 4 + k, 8 + k and 12 + k
        for (int k = 0; k < 4; ++k) {
          const auto lane = [&](int n) __attribute__((always_inline)) { return read<Quad>(base + delta[l + k + n]); };
          lanes[k] = joined(lane(0), lane(4), lane(8), lane(12));
        }
        transpose(lanes);
        for (int k = 0; k < 4; ++k) std::memcpy(&w.v[row + k][l], &lanes[k], 64);
      }
    } else {
      for_lanes(active, [&](int l) {
        for (int k = 0; k < 4; ++k) w.v[row + k][l] = read<u32>(base + delta[l] + 4 * k);
      });
    }
  } else {
    static_assert(kKind.bytes == 12);
    for_lanes(active, [&](int l) {
      for (int k = 0; k < 3; ++k) w.v[row + k][l] = read<u32>(base + delta[l] + 4 * k);
    });
  }
}

// Whether a store would change any byte.
template <StoreKind kKind>
bool store_differs(const Wave& w, u32 row, u32 active, const u8* base, const i32* delta) {
  for (; active; active &= active - 1) {
    const int l = std::countr_zero(active);
    u32 data[4];
    for (u32 k = 0; k < (kKind.bytes + 3) / 4; ++k) data[k] = w.v[row + k][l];
    if (kKind.high) data[0] >>= 16;
    if (std::memcmp(base + delta[l], data, kKind.bytes)) return true;
  }
  return false;
}

// Lanes store in ascending order: where two write one place, the higher lane's data stay.
template <StoreKind kKind>
RDNA_INLINE void store_lanes(const Wave& w, u32 row, u32 active, u8* base, const i32* delta, LaneLayout layout) {
  using namespace detail;
  const u32(*from)[kLanes] = &w.v[row];
  if constexpr (kKind.bytes < 4) {
    for_lanes(active, [&](int l) {
      const u32 value = kKind.high ? from[0][l] >> 16 : from[0][l];
      std::memcpy(base + delta[l], &value, kKind.bytes);
    });
  } else if constexpr (kKind.bytes == 4) {
    if (layout == LaneLayout::in_one) {
      std::memcpy(base, from, 128);
    } else {
      for_lanes(active, [&](int l) { std::memcpy(base + delta[l], &from[0][l], 4); });
    }
  } else if constexpr (kKind.bytes == 8) {
    if (layout == LaneLayout::in_one) {
      const u32x a = *reinterpret_cast<const u32x*>(from[0]), b = *reinterpret_cast<const u32x*>(from[1]);
      const u32x low = zip_low(a, b), high = zip_high(a, b);
      std::memcpy(base, &low, 128);
      std::memcpy(base + 128, &high, 128);
    } else {
      for_lanes(active, [&](int l) {
        const u64 value = from[0][l] | u64{from[1][l]} << 32;
        std::memcpy(base + delta[l], &value, 8);
      });
    }
  } else if constexpr (kKind.bytes == 16) {
    if (layout >= LaneLayout::in_eights) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 16) {
        const auto lanes = [&](int k) __attribute__((always_inline)) { return read<Sixteen>(&from[k][l]); };
        const u32x x = zip(lanes(0), lanes(2)), y = zip(lanes(1), lanes(3));
        const u32x eights[2] = {zip_low(x, y), zip_high(x, y)};
        for (int k = 0; k < 2; ++k) std::memcpy(base + delta[l + 8 * k], &eights[k], 128);
      }
    } else if (active == ~0u) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 4) {
        Quad lanes[4];
        for (int k = 0; k < 4; ++k) std::memcpy(&lanes[k], &from[k][l], 16);
        transpose(lanes);
        for (int k = 0; k < 4; ++k) std::memcpy(base + delta[l + k], &lanes[k], 16);
      }
    } else {
      for_lanes(active, [&](int l) {
        for (int k = 0; k < 4; ++k) std::memcpy(base + delta[l] + 4 * k, &from[k][l], 4);
      });
    }
  } else {
    static_assert(kKind.bytes == 12);
    for_lanes(active, [&](int l) {
      for (int k = 0; k < 3; ++k) std::memcpy(base + delta[l] + 4 * k, &from[k][l], 4);
    });
  }
}

}  // namespace rdna
