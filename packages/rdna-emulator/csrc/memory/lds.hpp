// How DS instructions find their lanes' bytes in LDS, and what that costs in bank cycles.
#pragma once
#include "memory/move.hpp"
#include "run/launch.hpp"

namespace rdna {

// What a pattern costs: passes of 32, 16 or 8 lanes (4, 8 and more bytes a lane), in each the most that one of the 32
// banks must deliver; equal dwords are one delivery, except to atomics, which go one by one.
void count_bank_cycles(LdsSite&, u32 bytes, bool atomic);

void lds_pattern_slowly(Wave&, LdsSite&, u32 active, const u32* addresses, u32 bytes, bool atomic);
[[noreturn]] void lds_fault(Wave&, const Inst&, u32 active, const u32* addresses, u32 offset, u32 bytes, u32 alignment);

struct LdsLanes {
  u8* lds;
  u32 first;  // address of the first active lane
  const LdsSite* site;
  u8* at(u32 offset) const { return lds + u32{first + offset}; }
};

// The alignment that the device wants: that of the element, 4 for wider ones.
constexpr u32 lds_alignment(u32 bytes) { return bytes < 4 ? bytes : 4; }

// `offsets`: of each access that the instruction makes with these addresses.
template <u32 kBytes, bool kAtomic = false, class... Offsets>
RDNA_INLINE LdsLanes locate_lds(Wave& w, const Inst& i, u32 active, const u32* addresses, Offsets... offsets) {
  Workgroup& group = *w.group;
  LdsSite& site = lds_site(w, i);
  const u32x differing = (*reinterpret_cast<const u32x*>(addresses) - addresses[site.first]) ^ site.deltas();
  if (!site.fits(active, differing) || (kBytes < 4 && (addresses[site.first] & 3) != site.phase)) [[unlikely]] {
    lds_pattern_slowly(w, site, active, addresses, kBytes, kAtomic);
  }
  site.executions += sizeof...(offsets);
  const u32 first = addresses[site.first];
  constexpr u32 kAlignment = kAtomic ? kBytes : lds_alignment(kBytes);
  const auto check = [&](u32 offset) {
    const i64 at = i64{first + offset};  // the sum has 32 bits: a base may be negative
    const bool inside = at + site.low >= 0 && at + site.high + kBytes <= group.lds_bytes;
    if (!inside || ((static_cast<u32>(at) | site.alignment) & (kAlignment - 1))) [[unlikely]] {
      lds_fault(w, i, active, addresses, offset, kBytes, kAlignment);
    }
  };
  (check(offsets), ...);
  return {group.lds, first, &site};
}

inline void report_lds(Wave& w, const Inst& i, Access access, u32 active, const LdsLanes& lanes, u32 offset, u32 bytes,
                       u32 row, bool high, bool returns) {
  const u32x lane_addresses = lanes.site->deltas() + (lanes.first + offset);
  LaneAccess all = {access, active, nullptr, bytes, static_cast<u16>(row), high, returns};
  if (active == ~0u && repeats_lds(w, i, all, lane_addresses)) return;
  alignas(256) u64 addresses[kLanes];
  *reinterpret_cast<u64x*>(addresses) = convert<u64x>(lane_addresses);
  all.addresses = addresses;
  check_lds(w, i, all);
}

RDNA_INLINE u32 row_of_data(const Inst& i, int k) { return static_cast<u32>(i.src[k]) / sizeof(u32x); }

}  // namespace rdna
