// Buffers: vector loads with a bound. A lane at or past it asks memory for nothing and gets zeros.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

using Buffer = __amdgpu_buffer_rsrc_t;

// The same in all lanes. Word 3 of the descriptor: 32-bit data, offsets compared as bytes.
RDNA_INLINE Buffer buffer(uint64_t base, uint32_t bytes) {
  return __builtin_amdgcn_make_buffer_rsrc((void *)base, 0, bytes, 0x31004000);
}

template <class T>
RDNA_INLINE T load(Buffer from, uint32_t offset, int immediate = 0) {
  if constexpr (__is_same(T, float)) return bits<float>(load<uint32_t>(from, offset, immediate));
  if constexpr (__is_same(T, float4)) return bits<float4>(load<word4>(from, offset, immediate));
  if constexpr (__is_same(T, uint32_t)) return __builtin_amdgcn_raw_buffer_load_b32(from, offset + immediate, 0, 0);
  if constexpr (__is_same(T, word2)) return __builtin_amdgcn_raw_buffer_load_b64(from, offset + immediate, 0, 0);
  if constexpr (__is_same(T, word3)) return __builtin_amdgcn_raw_buffer_load_b96(from, offset + immediate, 0, 0);
  if constexpr (__is_same(T, word4)) return __builtin_amdgcn_raw_buffer_load_b128(from, offset + immediate, 0, 0);
}

}  // namespace rdna
