// GLOBAL, FLAT and MUBUF atomics: atomic on the host as well, for workgroups run on several threads.
#include "memory/atomic.hpp"
#include "memory/buffer.hpp"
#include "memory/flat.hpp"

namespace rdna {
namespace {

using namespace atomic;

template <class T, class Operation, bool kCompares>
T modify_at(Wave& w, u32 row, int lane, T* at) {
  constexpr u32 kRows = sizeof(T) / 4;
  const T data = read_lane<T>(w, row, lane);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED), changed;
  do {
    if constexpr (kCompares) {
      changed = Operation{}(old, data, read_lane<T>(w, row + kRows, lane));
    } else {
      changed = Operation{}(old, data);
    }
  } while (!__atomic_compare_exchange_n(at, &old, changed, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  w.group->worker->changes += changed != old;
  return old;
}

template <class T>
void check_alignment(Wave& w, const Inst& i, int lane, const void* at) {
  if (reinterpret_cast<u64>(at) % sizeof(T)) {
    char text[100];
    std::snprintf(text, sizeof text, "atomic of %zu bytes at 0x%llx, which is not a multiple of %zu", sizeof(T),
                  static_cast<unsigned long long>(reinterpret_cast<u64>(at)), sizeof(T));
    trap(w, i, Fault::misaligned, lane, text);
  }
}

template <class T, class Operation, bool kCompares>
void modify_global(Wave& w, const Inst& i, u32 active, const LaneAddresses& at, T* results) {
  u64 addresses[kLanes];
  const Located located = locate(w, i, global_site(w, i), active, at, sizeof(T), true, addresses);
  if (located.site) fill_addresses(located, active, addresses);
  const u32 row = row_of_source(i, 1);
  std::unique_lock<std::mutex> order;  // what an atomic reads and what its wave learns of the others go together
  if (w.shadow) [[unlikely]] {
    order = lock_atomics(w);
    report_access(w, i, Access::atomic, active, addresses, sizeof(T), i.info->glc ? i.dst : row, false, i.info->glc);
  }
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    T* target = reinterpret_cast<T*>(addresses[l]);
    check_alignment<T>(w, i, l, target);
    results[l] = modify_at<T, Operation, kCompares>(w, row, l, target);
  }
}

template <class T>
void write_results(Wave& w, const Inst& i, u32 active, const T* results) {
  if (!i.info->glc) return;
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    write_lane<T>(w, i.dst, l, results[l]);
  }
}

template <class T, class Operation, bool kCompares>
void global(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  T results[kLanes];
  modify_global<T, Operation, kCompares>(w, i, active, global_addresses(w, i), results);
  write_results(w, i, active, results);
}

template <class T, class Operation, bool kCompares>
void flat(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  T results[kLanes];
  const LaneAddresses at = global_addresses(w, i);
  const FlatLanes lanes = flat_lanes(at, active);
  if (lanes.global) modify_global<T, Operation, kCompares>(w, i, lanes.global, at, results);
  const u32 row = row_of_source(i, 1);
  check_apertures(w, i, Access::atomic, lanes, at, sizeof(T), i.info->glc ? i.dst : row, false, i.info->glc);
  for (u32 left = lanes.shared | lanes.own; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    const u64 offset = at.of(l) & 0xffffffffu;
    u8* target = lanes.shared >> l & 1 ? shared_lane(w, i, l, offset, sizeof(T)) : private_lane(w, i, l, offset, sizeof(T));
    check_alignment<T>(w, i, l, target);
    results[l] = modify_at<T, Operation, kCompares>(w, row, l, reinterpret_cast<T*>(target));
  }
  write_results(w, i, active, results);
}

template <class T, class Operation, bool kCompares>
void buffer(Wave& w, const Inst& i) {
  const BufferLanes lanes = buffer_lanes(w, i, sizeof(T));
  T results[kLanes] = {};
  if (lanes.inside) modify_global<T, Operation, kCompares>(w, i, lanes.inside, lanes.at, results);
  write_results(w, i, lanes.inside | lanes.outside, results);
}

#define RDNA_ATOMIC(name, T, Operation, compares)                 \
  {"global_atomic_" name, global<T, Operation, compares>},        \
      {"flat_atomic_" name, flat<T, Operation, compares>},        \
      {"buffer_atomic_" name, buffer<T, Operation, compares>}

const Registration kBodies({
    RDNA_ATOMIC("swap_b32", u32, Swap, false),
    RDNA_ATOMIC("cmpswap_b32", u32, CompareSwap, true),
    RDNA_ATOMIC("add_u32", u32, Add, false),
    RDNA_ATOMIC("sub_u32", u32, Sub, false),
    RDNA_ATOMIC("csub_u32", u32, ClampedSub, false),
    RDNA_ATOMIC("min_i32", u32, MinSigned, false),
    RDNA_ATOMIC("min_u32", u32, MinUnsigned, false),
    RDNA_ATOMIC("max_i32", u32, MaxSigned, false),
    RDNA_ATOMIC("max_u32", u32, MaxUnsigned, false),
    RDNA_ATOMIC("and_b32", u32, And, false),
    RDNA_ATOMIC("or_b32", u32, Or, false),
    RDNA_ATOMIC("xor_b32", u32, Xor, false),
    RDNA_ATOMIC("inc_u32", u32, Increment, false),
    RDNA_ATOMIC("dec_u32", u32, Decrement, false),
    RDNA_ATOMIC("cmpswap_f32", u32, CompareSwapFloat, true),
    RDNA_ATOMIC("min_f32", u32, MinFloat, false),
    RDNA_ATOMIC("max_f32", u32, MaxFloat, false),
    RDNA_ATOMIC("add_f32", u32, AddFloat, false),
    RDNA_ATOMIC("swap_b64", u64, Swap, false),
    RDNA_ATOMIC("cmpswap_b64", u64, CompareSwap, true),
    RDNA_ATOMIC("add_u64", u64, Add, false),
    RDNA_ATOMIC("sub_u64", u64, Sub, false),
    RDNA_ATOMIC("min_i64", u64, MinSigned, false),
    RDNA_ATOMIC("min_u64", u64, MinUnsigned, false),
    RDNA_ATOMIC("max_i64", u64, MaxSigned, false),
    RDNA_ATOMIC("max_u64", u64, MaxUnsigned, false),
    RDNA_ATOMIC("and_b64", u64, And, false),
    RDNA_ATOMIC("or_b64", u64, Or, false),
    RDNA_ATOMIC("xor_b64", u64, Xor, false),
    RDNA_ATOMIC("inc_u64", u64, Increment, false),
    RDNA_ATOMIC("dec_u64", u64, Decrement, false),
});

#undef RDNA_ATOMIC

}  // namespace
}  // namespace rdna
