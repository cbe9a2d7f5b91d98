// Matrix fragments of v_wmma_f32_16x16x16 (wave32), D = A B + C.
//
// With half h = lane / 16 and column c = lane % 16, a lane holds row c of A and column c of B, 16 values of k each.
// Element j of lane (h, c) of the result is D[2j + h][c], and half h makes it of its own lanes only. So
//   - A's row r is read from lane (r % 2, r) alone: the other lane of that row may hold anything, and
//   - each half may take k in its own order, in A and in B alike.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

using Fragment = word8;       // A or B, 16-bit elements
using Accumulator = float8;  // C or D, fp32

RDNA_INLINE Fragment fragment(word4 first, word4 second) {
  return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
}

// The same value in all elements; made element by element, or the compiler copies it twice.
RDNA_INLINE Accumulator repeated(float value) {
  Accumulator all;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float copy = value;
    opaque(copy);
    all[j] = copy;
  }
  return all;
}

RDNA_INLINE Accumulator multiply_add_fp16(Fragment a, Fragment b, Accumulator c) {
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(bits<half16>(a), bits<half16>(b), c);
}

RDNA_INLINE Accumulator multiply_add_bf16(Fragment a, Fragment b, Accumulator c) {
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(bits<short16>(a), bits<short16>(b), c);
}

}  // namespace rdna
