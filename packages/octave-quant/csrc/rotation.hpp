// The Walsh-Hadamard transform: butterflies at stride 1, 2, 4, ..., in this order, for another one rounds otherwise.
#pragma once
#include "vectors.hpp"

namespace octave {

// Lane i gets lane i ^ stride.
template <int stride>
OCTAVE_INLINE Floats exchange(Floats x) {
#define OCTAVE_AT(i) ((i) ^ stride)
  return __builtin_shufflevector(x, x, OCTAVE_AT(0), OCTAVE_AT(1), OCTAVE_AT(2), OCTAVE_AT(3), OCTAVE_AT(4), OCTAVE_AT(5),
                                 OCTAVE_AT(6), OCTAVE_AT(7), OCTAVE_AT(8), OCTAVE_AT(9), OCTAVE_AT(10), OCTAVE_AT(11),
                                 OCTAVE_AT(12), OCTAVE_AT(13), OCTAVE_AT(14), OCTAVE_AT(15));
#undef OCTAVE_AT
}

// (a, b) to (a + b, a - b) for each a whose lane number lacks the bit of the stride, and its b.
template <int stride>
OCTAVE_INLINE Floats butterfly(Floats x) {
  constexpr Ints lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Ints minus = ((lane & stride) != 0) & INT32_MIN;
  const Floats signed_x = __builtin_bit_cast(Floats, __builtin_bit_cast(Ints, x) ^ minus);
  return exchange<stride>(x) + signed_x;
}

OCTAVE_INLINE void butterfly(Floats& a, Floats& b) {
  const Floats sum = a + b;
  b = a - b;
  a = sum;
}

// Transforms each block of `n` floats in place; n is a multiple of `block`, and block one of 64, 128, 256, 512.
inline void transform(float* y, int n, int block) {
  const Floats factor = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(block)));
  const bool single = block == 64;
  for (int at = 0; at < n; at += 64) {
    Floats x[4];
    for (int i = 0; i < 4; ++i) {
      x[i] = load<Floats>(y + at + kLanes * i);
      x[i] = butterfly<8>(butterfly<4>(butterfly<2>(butterfly<1>(x[i]))));
    }
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    for (int i = 0; i < 4; ++i) store(y + at + kLanes * i, single ? x[i] * factor : x[i]);
  }
  for (int stride = 64; stride < block; stride *= 2) {
    const bool last = 2 * stride == block;
    for (int at = 0; at < n; at += 2 * stride) {
      for (int i = at; i < at + stride; i += kLanes) {
        Floats a = load<Floats>(y + i), b = load<Floats>(y + i + stride);
        butterfly(a, b);
        store(y + i, last ? a * factor : a);
        store(y + i + stride, last ? b * factor : b);
      }
    }
  }
}

}  // namespace octave
