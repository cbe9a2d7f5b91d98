// Keywords and types of device code. No ROCm header is included anywhere: what is needed is defined here.
#pragma once

#include <stdint.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define RDNA_INLINE __device__ inline __attribute__((always_inline))

namespace rdna {

using half2 = _Float16 __attribute__((ext_vector_type(2)));
using half16 = _Float16 __attribute__((ext_vector_type(16)));
using short16 = short __attribute__((ext_vector_type(16)));
using float2 = float __attribute__((ext_vector_type(2)));
using float4 = float __attribute__((ext_vector_type(4)));
using float8 = float __attribute__((ext_vector_type(8)));
using word2 = uint32_t __attribute__((ext_vector_type(2)));
using word3 = uint32_t __attribute__((ext_vector_type(3)));
using word4 = uint32_t __attribute__((ext_vector_type(4)));
using word8 = uint32_t __attribute__((ext_vector_type(8)));

constexpr int kWaveSize = 32;
// RDNA 3.5 computes with floats in scalar registers too; RDNA 3 takes vector registers for that.
#if defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1152__) || defined(__gfx1153__)
constexpr bool kScalarFloats = true;
#else
constexpr bool kScalarFloats = false;
#endif
constexpr float kInfinity = __builtin_huge_valf();

template <class To, class From>
RDNA_INLINE To bits(From from) {
  return __builtin_bit_cast(To, from);
}

RDNA_INLINE uint32_t thread_in_workgroup() { return __builtin_amdgcn_workitem_id_x(); }

// Puts a value that is the same in all lanes into a scalar register.
RDNA_INLINE int uniform(int value) { return __builtin_amdgcn_readfirstlane(value); }

// Hides where a lane's value comes from: from here on the compiler neither makes it again nor knows anything of it, and
// what follows from it is not made before.
template <class T>
RDNA_INLINE void opaque(T &value) {
  asm volatile("" : "+v"(value));
}

// The same for a value that is the same in all lanes.
template <class T>
RDNA_INLINE void opaque_uniform(T &value) {
  asm volatile("" : "+s"(value));
}

RDNA_INLINE float8 joined(float4 first, float4 second) {
  return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
}

template <class T>
constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}

template <class T>
constexpr T larger(T a, T b) {
  return a > b ? a : b;
}

}  // namespace rdna
