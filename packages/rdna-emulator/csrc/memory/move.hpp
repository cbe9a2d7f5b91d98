// Data between a wave's registers and host memory. Lane l's bytes are at base + delta[l]; the caller has checked that the
// active lanes may be accessed there.
#pragma once
#include <bit>

#include "core/machine.hpp"

namespace rdna {

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
RDNA_INLINE T read(const u8* from) {
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
RDNA_INLINE u32x zip_low(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11,
                                 43, 12, 44, 13, 45, 14, 46, 15, 47);
}
RDNA_INLINE u32x zip_high(u32x a, u32x b) {
  return __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57,
                                 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}

RDNA_INLINE void transpose(Quad (&rows)[4]) {
  const Quad a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5), b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Quad c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5), d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

}  // namespace detail

template <LoadKind kKind>
RDNA_INLINE void load_lanes(Wave& w, u32 row, u32 active, const u8* base, const i32* delta, bool contiguous) {
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
    if (contiguous) {
      std::memcpy(w.v[row], base, 128);
    } else {
      u32* to = w.v[row];
      for_lanes(active, [&](int l) { to[l] = read<u32>(base + delta[l]); });
    }
  } else if constexpr (kKind.bytes == 8) {
    if (contiguous) {
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
    if (contiguous) {
      const u32x a = read<u32x>(base), b = read<u32x>(base + 128), c = read<u32x>(base + 256), d = read<u32x>(base + 384);
      const u32x ab_even = even(a, b), ab_odd = odd(a, b), cd_even = even(c, d), cd_odd = odd(c, d);
      w.row(row) = even(ab_even, cd_even);
      w.row(row + 1) = even(ab_odd, cd_odd);
      w.row(row + 2) = odd(ab_even, cd_even);
      w.row(row + 3) = odd(ab_odd, cd_odd);
    } else if (active == ~0u) {
#pragma clang loop unroll(full)
      for (int l = 0; l < kLanes; l += 4) {
        Quad lanes[4];
        for (int k = 0; k < 4; ++k) lanes[k] = read<Quad>(base + delta[l + k]);
        transpose(lanes);
        for (int k = 0; k < 4; ++k) std::memcpy(&w.v[row + k][l], &lanes[k], 16);
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
RDNA_INLINE void store_lanes(const Wave& w, u32 row, u32 active, u8* base, const i32* delta, bool contiguous) {
  using namespace detail;
  const u32(*from)[kLanes] = &w.v[row];
  if constexpr (kKind.bytes < 4) {
    for_lanes(active, [&](int l) {
      const u32 value = kKind.high ? from[0][l] >> 16 : from[0][l];
      std::memcpy(base + delta[l], &value, kKind.bytes);
    });
  } else if constexpr (kKind.bytes == 4) {
    if (contiguous) {
      std::memcpy(base, from, 128);
    } else {
      for_lanes(active, [&](int l) { std::memcpy(base + delta[l], &from[0][l], 4); });
    }
  } else if constexpr (kKind.bytes == 8) {
    if (contiguous) {
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
    if (active == ~0u) {
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
