// Which lane this is, and how values go from lane to lane without memory.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

// 0..31.
RDNA_INLINE uint32_t lane() { return __builtin_amdgcn_mbcnt_lo(~0u, 0); }

// The value of the lane in the same place of the other half: lane l gets that of lane l ^ 16.
RDNA_INLINE uint32_t other_half(uint32_t value) {
  return __builtin_amdgcn_permlanex16(value, value, 0x76543210, 0xfedcba98, true, true);
}

RDNA_INLINE float other_half(float value) { return bits<float>(other_half(bits<uint32_t>(value))); }

// The sum of a lane's value and that of the lane eight places on, around 16. The compiler makes two instructions of it.
RDNA_INLINE float plus_eight_lanes_on(float value) {
  float sum;
  asm("v_add_f32_dpp %0, %1, %1 row_ror:8 row_mask:0xf bank_mask:0xf" : "=v"(sum) : "v"(value));
  return sum;
}

// The value of one lane, the same for all.
RDNA_INLINE uint32_t from_lane(uint32_t value, int source) { return __builtin_amdgcn_readlane(value, source); }

// Whether any lane says yes.
RDNA_INLINE bool any(bool vote) { return __builtin_amdgcn_ballot_w32(vote) != 0; }

// The low (high) 16 bits of a, then those of b.
RDNA_INLINE uint32_t low_pair(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x05040100); }
RDNA_INLINE uint32_t high_pair(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x07060302); }

}  // namespace rdna
