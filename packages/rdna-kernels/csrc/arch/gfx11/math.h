// The transcendental unit, about 1 ulp.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

RDNA_INLINE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
RDNA_INLINE float log2(float x) { return __builtin_amdgcn_logf(x); }
RDNA_INLINE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
RDNA_INLINE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_INLINE uint32_t multiply_high(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }
RDNA_INLINE float maximum(float a, float b) { return __builtin_fmaxf(a, b); }

// Without the instructions that make numbers canonical first: the compiler adds them where it does not know better.
RDNA_INLINE float maximum(float a, float b, float c) {
  float result;
  asm("v_max3_f32 %0, %1, %2, %3" : "=v"(result) : "v"(a), "v"(b), "v"(c));
  return result;
}

// a / b for 0 <= a < 2^20 and 1 <= b < 2^20: the half keeps the quotient away from the rounding of whole numbers.
RDNA_INLINE int small_quotient(int a, float reciprocal_of_b) { return (int)(((float)a + 0.5f) * reciprocal_of_b); }

}  // namespace rdna
