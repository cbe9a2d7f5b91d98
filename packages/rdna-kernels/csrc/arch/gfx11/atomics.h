// What workgroups need to hand results to one another: fences and counters at device scope.
#pragma once

#include "arch/gfx11/device.h"
#include "arch/gfx11/memory.h"

namespace rdna {

// What this wave has stored is visible to whoever acquires after it.
RDNA_INLINE void release_to_device() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }

// What others released before is visible to this wave: its caches are invalidated.
RDNA_INLINE void acquire_from_device() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }

// Adds one and gives the value before.
RDNA_INLINE int count_arrival(Global<int> counter) {
  return __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}

// Brings the counter's line near, and waits for nothing.
RDNA_INLINE void ask_for_counter(Global<int> counter) {
  int nothing = 0;
  opaque(nothing);
  __hip_atomic_fetch_add(counter, nothing, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

RDNA_INLINE void reset_counter(Global<int> counter) {
  __hip_atomic_store(counter, 0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

}  // namespace rdna
