// The levels of N(0, 1) for 3 and 4 bits, and the choice between them.
#pragma once
#include "vectors.hpp"

namespace octave {

using Table = std::int8_t __attribute__((ext_vector_type(16)));

template <int bits>
struct Codebook;

template <>
struct Codebook<3> {
  static constexpr Table levels = {-127, -79, -45, -14, 14, 45, 79, 127};
  static constexpr float multiplier = 59;
};

template <>
struct Codebook<4> {
  static constexpr Table levels = {-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126};
  static constexpr float multiplier = 46;
};

// The codes of scaled coordinates: the number of midpoints between neighbouring levels strictly below each.
template <int bits>
OCTAVE_INLINE Bytes nearest(Floats t) {
  Ints codes = 0;
  for (int i = 0; i + 1 < 1 << bits; ++i) {
    const float midpoint = (Codebook<bits>::levels[i] + Codebook<bits>::levels[i + 1]) / 2.0f;
    codes -= t > midpoint;  // true is -1
  }
  return convert<Bytes>(codes);
}

template <int bits>
OCTAVE_INLINE Floats levels_of(Bytes codes) {
  using Shuffled = char __attribute__((vector_size(16)));
  const auto table = __builtin_bit_cast(Shuffled, Codebook<bits>::levels);
  const auto picked = __builtin_ia32_pshufb128(table, __builtin_bit_cast(Shuffled, codes));
  return convert<Floats>(convert<Ints>(__builtin_bit_cast(Bytes, picked)));
}

}  // namespace octave
