// Codes, a byte each, to bytes of the format and back. A dword of codes holds 4 dimensions; the format's dwords hold the
// dwords of codes shifted one over the other. Counts are multiples of 64.
#pragma once
#include "vectors.hpp"

namespace octave {

using Dword = std::uint32_t;

// Merges `count` dwords of codes, of `width` bits from bit `from` on, into count * width / 8 dwords; gives the end.
template <int width, int from>
OCTAVE_INLINE std::uint8_t* merge(const std::uint8_t* codes, int count, std::uint8_t* packed) {
  constexpr int fields = 8 / width;
  constexpr Dword mask = ((1u << width) - 1) * 0x01010101u;
  for (int at = 0; at < count; at += fields) {
    Dword merged = 0;
    for (int field = 0; field < fields; ++field) {
      merged |= (load<Dword>(codes + 4 * (at + field)) >> from & mask) << width * field;
    }
    store(packed, merged);
    packed += 4;
  }
  return packed;
}

// The inverse of merge: sets the bits from `from` on, which are zero if it is not 0. Gives the end of what it has read.
template <int width, int from>
OCTAVE_INLINE const std::uint8_t* split(const std::uint8_t* packed, int count, std::uint8_t* codes) {
  constexpr int fields = 8 / width;
  constexpr Dword mask = ((1u << width) - 1) * 0x01010101u;
  for (int at = 0; at < count; at += fields) {
    const Dword merged = load<Dword>(packed);
    for (int field = 0; field < fields; ++field) {
      std::uint8_t* code = codes + 4 * (at + field);
      const Dword bits = (merged >> width * field & mask) << from;
      store(code, from == 0 ? bits : load<Dword>(code) | bits);
    }
    packed += 4;
  }
  return packed;
}

// Packs `n` codes of `bits` bits; gives the end of what is written.
inline std::uint8_t* pack(const std::uint8_t* codes, int n, int bits, std::uint8_t* packed) {
  if (bits == 4) return merge<4, 0>(codes, n / 4, packed);
  packed = merge<2, 0>(codes, n / 4, packed);
  return merge<1, 2>(codes, n / 4, packed);
}

// Unpacks `n` codes; gives the end of what it has read.
inline const std::uint8_t* unpack(const std::uint8_t* packed, int n, int bits, std::uint8_t* codes) {
  if (bits == 4) return split<4, 0>(packed, n / 4, codes);
  packed = split<2, 0>(packed, n / 4, codes);
  return split<1, 2>(packed, n / 4, codes);
}

}  // namespace octave
