// The vector of all arithmetic here: 16 lanes, one or two registers of the host.
#pragma once
#include <cstdint>
#include <cstring>

namespace octave {

constexpr int kLanes = 16;
constexpr int kMaxHeadSize = 512;

template <class T>
using Lanes = T __attribute__((ext_vector_type(kLanes)));
using Floats = Lanes<float>;
using Ints = Lanes<std::int32_t>;
using Bytes = Lanes<std::int8_t>;

// A vector is wider than a register of AVX2: what passes one must be inlined.
#define OCTAVE_INLINE [[gnu::always_inline]] inline

template <class Vector>
OCTAVE_INLINE Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <class Vector>
OCTAVE_INLINE void store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

template <class To, class From>
OCTAVE_INLINE To convert(From from) {
  return __builtin_convertvector(from, To);
}

}  // namespace octave
