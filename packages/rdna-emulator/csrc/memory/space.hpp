// Loads and stores of one lane or all lanes, once their addresses are known; shared by GLOBAL, FLAT and MUBUF.
#pragma once
#include "memory/global.hpp"

namespace rdna {

RDNA_INLINE u32 row_of_source(const Inst& i, int k) { return static_cast<u32>(i.src[k]) / sizeof(u32x); }

RDNA_INLINE LaneAddresses global_addresses(const Wave& w, const Inst& i) {
  const u32* low = static_cast<const u32*>(w.source(i, 0));
  const u64 offset = static_cast<u64>(i64{static_cast<i32>(i.imm)});
  if (i.src[2]) return {low, nullptr, w.scalar_source64(i, 2) + offset};
  return {low, low + kLanes, offset};
}

inline void report_access(Wave& w, const Inst& i, Access access, u32 active, const u64* addresses, u32 bytes, u32 row,
                          bool high, bool returns) {
  check_global(w, i, {access, active, addresses, bytes, static_cast<u16>(row), high, returns});
}

// A load is reported once it has its data, a store before memory has it: whoever reads what another wave stored finds
// that store reported.
template <LoadKind kKind>
RDNA_INLINE void load_global(Wave& w, const Inst& i, u32 active, const LaneAddresses& at) {
  u64 addresses[kLanes];
  const Located located = locate(w, i, global_site(w, i), active, at, kKind.bytes, false, addresses);
  if (w.shadow && located.site) [[unlikely]] fill_addresses(located, active, addresses);
  if (located.site) [[likely]] {
    load_lanes<kKind>(w, i.dst, active, located.base, located.site->delta, located.site->layout);
  } else {
    for (u32 lanes = active; lanes; lanes &= lanes - 1) {
      const u32 lane = lanes & -lanes;
      load_lanes<kKind>(w, i.dst, lane, reinterpret_cast<const u8*>(addresses[std::countr_zero(lane)]), kNoDelta, LaneLayout::apart);
    }
  }
  if (w.shadow) [[unlikely]] report_access(w, i, Access::load, active, addresses, kKind.bytes, i.dst, kKind.half == Half::high, false);
}

template <StoreKind kKind>
RDNA_INLINE void store_global(Wave& w, const Inst& i, u32 active, const LaneAddresses& at) {
  u64 addresses[kLanes];
  const Located located = locate(w, i, global_site(w, i), active, at, kKind.bytes, true, addresses);
  const u32 row = row_of_source(i, 1);
  if (w.shadow) [[unlikely]] {
    if (located.site) fill_addresses(located, active, addresses);
    report_access(w, i, Access::store, active, addresses, kKind.bytes, row, kKind.high, false);
  }
  if (located.site) [[likely]] {
    note_store<kKind>(w, row, active, located.base, located.site->delta);
    store_lanes<kKind>(w, row, active, located.base, located.site->delta, located.site->layout);
    return;
  }
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const u32 lane = lanes & -lanes;
    u8* at = reinterpret_cast<u8*>(addresses[std::countr_zero(lane)]);
    note_store<kKind>(w, row, lane, at, kNoDelta);
    store_lanes<kKind>(w, row, lane, at, kNoDelta, LaneLayout::apart);
  }
}

}  // namespace rdna
