// How GLOBAL, FLAT and MUBUF instructions find the host memory of their lanes.
#pragma once
#include "memory/move.hpp"
#include "run/launch.hpp"

namespace rdna {

// Addresses of the lanes: base + low[l], or base + (high[l]:low[l]).
struct LaneAddresses {
  const u32* low;
  const u32* high;  // null: 32-bit offsets
  u64 base;
  RDNA_INLINE u64 of(int lane) const { return base + (low[lane] | (high ? u64{high[lane]} << 32 : 0)); }
};

// Where the lanes' data lie. `site` null: they are in several spans, or far apart, and each lane has its own address.
struct Located {
  u8* base = nullptr;
  const GlobalSite* site = nullptr;
};

// Checks every active lane against the registered spans and counts the traffic; `addresses` is filled when `site` is null.
Located locate_slowly(Wave&, const Inst&, GlobalSite&, u32 active, const LaneAddresses&, u32 bytes, bool write,
                      u64* addresses);

// Notes lines for the worker, which keeps those of one word of the bits to itself until it comes to another.
void mark_lines(Workgroup&, u64* lines, u32 span, u64 first_line, u64 bits);
// Sets the bits that the worker has kept; `touched` learns of words that were empty.
void mark_pending(Worker&);
void count_runs(Workgroup&, const GlobalSite&, u64 first_line);

RDNA_INLINE void count_lines(Workgroup& group, const GlobalSite& site, u64 address) {
  if (!site.lines) return;
  const u64 first_line = (address - site.origin) >> 7;
  if (!site.line_bits) [[unlikely]] return count_runs(group, site, first_line);
  const u64 line = first_line + static_cast<u64>(site.lowest_line);
  const u64 shift = line & 63;
  const u64* word = site.lines + (line >> 6);
  const u64 low = site.line_bits << shift, high = shift ? site.line_bits >> (64 - shift) : 0;
  PendingLines& pending = group.worker->pending;
  if (word == pending.word && !high) {
    pending.bits |= low;
    return;
  }
  u64 missing = low & ~__atomic_load_n(word, __ATOMIC_RELAXED);
  if (high) missing |= high & ~__atomic_load_n(word + 1, __ATOMIC_RELAXED);
  if (missing) mark_lines(group, site.lines, site.span, line, site.line_bits);
}

RDNA_INLINE Located locate(Wave& w, const Inst& i, GlobalSite& site, u32 active, const LaneAddresses& at, u32 bytes,
                           bool write, u64* addresses) {
  const u32x low = *reinterpret_cast<const u32x*>(at.low);
  const u64 first_low = at.low[site.first];
  u32x differing = (low - static_cast<u32>(first_low)) ^ site.deltas();
  u64 address = at.base + first_low;
  if (at.high) {
    const u32 first_high = at.high[site.first];
    differing |= *reinterpret_cast<const u32x*>(at.high) ^ first_high;
    address += u64{first_high} << 32;
  }
  const u64 lowest = first_low + static_cast<u64>(site.low), highest = first_low + static_cast<u64>(site.high);
  const bool in_span = address - site.begin <= site.room;
  const bool in_phase = ((address - site.origin) & 127) == site.phase;
  if (site.fits(active, differing) && in_span && in_phase && !((lowest | highest) >> 32)) [[likely]] {
    ++site.executions;
    count_lines(*w.group, site, address);
    return {reinterpret_cast<u8*>(address), &site};
  }
  return locate_slowly(w, i, site, active, at, bytes, write, addresses);
}

inline void fill_addresses(const Located& located, u32 active, u64* addresses) {
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    addresses[l] = reinterpret_cast<u64>(located.base) + static_cast<u64>(i64{located.site->delta[l]});
  }
}

extern const i32 kNoDelta[kLanes];

}  // namespace rdna
