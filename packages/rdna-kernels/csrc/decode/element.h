// fp16 and bf16: the matrix instruction, rounding of results, and weights as a high part plus a residual.
#pragma once

#include "arch/gfx11/fragment.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/math.h"

namespace rdna {

// Weights come in pairs, 16 bits each. `high` rounds them; `residual` rounds p + factor * high: what high left over
// where the factor is -1, high itself where it is 0. `round` makes outputs: to nearest even.
struct Fp16 {
  static RDNA_INLINE Accumulator multiply_add(Fragment a, Fragment b, Accumulator c) {
    return multiply_add_fp16(a, b, c);
  }

  static RDNA_INLINE uint32_t high(float p, float q) { return bits<uint32_t>(__builtin_amdgcn_cvt_pkrtz(p, q)); }

  static RDNA_INLINE uint32_t residual(float p, float q, float factor) {
    half2 rounded = bits<half2>(high(p, q));
    return high(rdna::multiply_add((float)rounded.x, factor, p), rdna::multiply_add((float)rounded.y, factor, q));
  }

  static RDNA_INLINE uint32_t round(float p, float q) { return bits<uint32_t>(half2{(_Float16)p, (_Float16)q}); }
};

struct Bf16 {
  static RDNA_INLINE Accumulator multiply_add(Fragment a, Fragment b, Accumulator c) {
    return multiply_add_bf16(a, b, c);
  }

  // Adding half of the last place that stays rounds a finite number to nearest.
  static RDNA_INLINE uint32_t nearest(float p) { return bits<uint32_t>(p) + 0x8000; }

  static RDNA_INLINE uint32_t high(float p, float q) { return high_pair(nearest(p), nearest(q)); }

  static RDNA_INLINE uint32_t residual(float p, float q, float factor) {
    uint32_t mask = factor != 0 ? 0xffff0000 : 0;
    return high(p - bits<float>(nearest(p) & mask), q - bits<float>(nearest(q) & mask));
  }

  static RDNA_INLINE uint32_t round(float p, float q) { return high_pair(nearest_even(p), nearest_even(q)); }

  static RDNA_INLINE uint32_t nearest_even(float p) {
    uint32_t word = bits<uint32_t>(p);
    uint32_t rounded = word + 0x7fff + (word >> 16 & 1);
    return p == p ? rounded : word | 0x400000;  // NaN stays NaN
  }
};

#if RDNA_BF16
using Element = Bf16;
#else
using Element = Fp16;
#endif

}  // namespace rdna
