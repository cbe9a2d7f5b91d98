// LDS, the memory of a workgroup, by byte address.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

using Lds = __attribute__((address_space(3))) char *;

template <class T>
RDNA_INLINE T lds_load(Lds at) {
  typedef T Any __attribute__((may_alias));
  return *(__attribute__((address_space(3))) const Any *)at;
}

template <class T>
RDNA_INLINE void lds_store(Lds at, T value) {
  typedef T Any __attribute__((may_alias));
  *(__attribute__((address_space(3))) Any *)at = value;
}

// A row pitch that is free of bank conflicts for 16-byte accesses of neighbouring rows: an odd number of 16 bytes.
constexpr int lds_pitch(int row_bytes) { return row_bytes + 16; }

}  // namespace rdna
