// Global memory: vector loads and stores at a uniform base plus a lane's byte offset, and scalar loads.
#pragma once

#include "arch/gfx11/device.h"

namespace rdna {

template <class T>
using Global = __attribute__((address_space(1))) T *;

// Memory that no one writes while the kernel runs, read through the scalar cache.
template <class T>
using Constant = __attribute__((address_space(4))) const T *;

template <class T>
RDNA_INLINE T load(uint64_t base, uint32_t offset) {
  return *(Global<const T>)(base + offset);
}

template <class T>
RDNA_INLINE void store(uint64_t base, uint32_t offset, T value) {
  *(Global<T>)(base + offset) = value;
}

// The address must be the same in all lanes.
template <class T>
RDNA_INLINE T load_uniform(const T *base, int64_t index) {
  return ((Constant<T>)base)[index];
}

// Two uniform values are asked for before either is waited for.
template <class A, class B>
RDNA_INLINE void load_together(A &a, B &b) {
  asm volatile("" : "+s"(a), "+s"(b));
}

// The argument of the kernel once more: what is read through this is read here, and takes no register before.
template <class T>
RDNA_INLINE const T &argument_again() {
  uint64_t at = (uint64_t)__builtin_amdgcn_kernarg_segment_ptr();
  asm volatile("" : "+s"(at));
  return *(const T *)(Constant<T>)at;
}

RDNA_INLINE uint64_t address(const void *pointer) { return (uint64_t)pointer; }

// Waits until no more than so many of this wave's latest vector loads are on their way. The compiler waits by itself,
// load by load, where their values are used; one wait for several costs fewer instructions.
template <int kNewer>
RDNA_INLINE void wait_for_loads_before() {
  __builtin_amdgcn_s_waitcnt(kNewer << 10 | 0x3f7);
}

// The compiler moves no instruction past this point: it keeps loads where they hide their latency.
RDNA_INLINE void pin_order() { __builtin_amdgcn_sched_barrier(0); }

}  // namespace rdna
