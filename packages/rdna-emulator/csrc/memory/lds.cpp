// DS loads and stores.
#include "memory/lds.hpp"

#include <algorithm>

namespace rdna {

void count_bank_cycles(LdsSite& site, u32 bytes, bool atomic) {
  const u32 dwords = bytes < 4 ? 1 : bytes / 4;
  const int pass_lanes = dwords == 1 ? 32 : dwords == 2 ? 16 : 8;
  site.cycles = site.minimum = 0;
  for (int begin = 0; begin < kLanes; begin += pass_lanes) {
    i32 wanted[kLanes * 2];
    u32 count = 0;
    for (int l = begin; l < begin + pass_lanes; ++l) {
      if (!(site.active >> l & 1)) continue;
      const i32 at = static_cast<i32>(site.phase) + site.delta[l];
      const i32 last = (at + static_cast<i32>(bytes) - 1) >> 2;
      for (i32 dword = at >> 2; dword <= last && count < kLanes * 2; ++dword) wanted[count++] = dword;
    }
    if (!count) continue;
    if (!atomic) {
      std::sort(wanted, wanted + count);
      count = static_cast<u32>(std::unique(wanted, wanted + count) - wanted);
    }
    u32 deliveries[32] = {};
    u32 most = 0;
    for (u32 k = 0; k < count; ++k) most = std::max(most, ++deliveries[wanted[k] & 31]);
    site.cycles += most;
    ++site.minimum;
  }
}

void lds_pattern_slowly(Wave& w, LdsSite& site, u32 active, const u32* addresses, u32 bytes, bool atomic) {
  add_executions(site, w.group->state->traffic);
  const u32 first = addresses[std::countr_zero(active)];
  i32 delta[kLanes];
  u32 alignment = 0;
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    delta[l] = static_cast<i32>(addresses[l] - first);
    alignment |= static_cast<u32>(delta[l]);
  }
  site.set(active, delta, bytes);
  site.alignment = alignment;
  site.phase = first & 3;
  // Far lanes fault as soon as the range is checked; what they cost does not matter.
  if (site.high - site.low <= 1 << 20) count_bank_cycles(site, bytes, atomic);
}

void lds_fault(Wave& w, const Inst& i, u32 active, const u32* addresses, u32 offset, u32 bytes, u32 alignment) {
  const u32 size = w.group->lds_bytes;
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const u64 at = u64{addresses[l] + offset};
    const std::string access = "access of " + std::to_string(bytes) + " bytes at LDS byte " + std::to_string(at);
    if (at + bytes > size) {
      trap(w, i, Fault::memory, l, access + ", outside the workgroup's " + std::to_string(size) + " bytes");
    }
    if (at & (alignment - 1)) {
      trap(w, i, Fault::misaligned, l, access + ", which is not a multiple of " + std::to_string(alignment));
    }
  }
  trap(w, i, Fault::memory, std::countr_zero(active), "access outside LDS");
}

namespace {

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const LdsLanes lanes = locate_lds<kKind.bytes>(w, i, active, static_cast<const u32*>(w.source(i, 0)), i.imm);
  if (w.shadow) [[unlikely]] {
    report_lds(w, i, Access::load, active, lanes, i.imm, kKind.bytes, i.dst, kKind.half == Half::high, false);
  }
  load_lanes<kKind>(w, i.dst, active, lanes.at(i.imm), lanes.site->delta, lanes.site->layout);
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const LdsLanes lanes = locate_lds<kKind.bytes>(w, i, active, static_cast<const u32*>(w.source(i, 0)), i.imm);
  const u32 row = row_of_data(i, 1);
  if (w.shadow) [[unlikely]] report_lds(w, i, Access::store, active, lanes, i.imm, kKind.bytes, row, kKind.high, false);
  note_store<kKind>(w, row, active, lanes.at(i.imm), lanes.site->delta);
  store_lanes<kKind>(w, row, active, lanes.at(i.imm), lanes.site->delta, lanes.site->layout);
}

// Two elements a lane, at offset0 and offset1 times the element's size (or 64 times that).
template <u32 kBytes, u32 kScale>
void load_2addr(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const u32 offsets[2] = {(i.imm & 0xff) * kBytes * kScale, (i.imm >> 8) * kBytes * kScale};
  const LdsLanes lanes =
      locate_lds<kBytes>(w, i, active, static_cast<const u32*>(w.source(i, 0)), offsets[0], offsets[1]);
  for (int k = 0; k < 2; ++k) {
    const u32 row = i.dst + k * kBytes / 4;
    if (w.shadow) [[unlikely]] report_lds(w, i, Access::load, active, lanes, offsets[k], kBytes, row, false, false);
    load_lanes<LoadKind{kBytes}>(w, row, active, lanes.at(offsets[k]), lanes.site->delta, lanes.site->layout);
  }
}

template <u32 kBytes, u32 kScale>
void store_2addr(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const u32 offsets[2] = {(i.imm & 0xff) * kBytes * kScale, (i.imm >> 8) * kBytes * kScale};
  const LdsLanes lanes =
      locate_lds<kBytes>(w, i, active, static_cast<const u32*>(w.source(i, 0)), offsets[0], offsets[1]);
  for (int k = 0; k < 2; ++k) {
    const u32 row = row_of_data(i, 1 + k);
    if (w.shadow) [[unlikely]] report_lds(w, i, Access::store, active, lanes, offsets[k], kBytes, row, false, false);
    note_store<StoreKind{kBytes}>(w, row, active, lanes.at(offsets[k]), lanes.site->delta);
    store_lanes<StoreKind{kBytes}>(w, row, active, lanes.at(offsets[k]), lanes.site->delta, lanes.site->layout);
  }
}

// Lane l's dword at M0 + offset + 4 l.
RDNA_INLINE void addresses_by_lane(const Wave& w, u32* addresses) {
  for (u32 l = 0; l < kLanes; ++l) addresses[l] = (w.s[kM0] & 0xffff) + 4 * l;
}

void load_addtid(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  alignas(128) u32 addresses[kLanes];
  addresses_by_lane(w, addresses);
  const LdsLanes lanes = locate_lds<4>(w, i, active, addresses, i.imm);
  if (w.shadow) report_lds(w, i, Access::load, active, lanes, i.imm, 4, i.dst, false, false);
  load_lanes<LoadKind{4}>(w, i.dst, active, lanes.at(i.imm), lanes.site->delta, lanes.site->layout);
}

void store_addtid(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  alignas(128) u32 addresses[kLanes];
  addresses_by_lane(w, addresses);
  const LdsLanes lanes = locate_lds<4>(w, i, active, addresses, i.imm);
  const u32 row = row_of_data(i, 1);
  if (w.shadow) report_lds(w, i, Access::store, active, lanes, i.imm, 4, row, false, false);
  note_store<StoreKind{4}>(w, row, active, lanes.at(i.imm), lanes.site->delta);
  store_lanes<StoreKind{4}>(w, row, active, lanes.at(i.imm), lanes.site->delta, lanes.site->layout);
}

const Registration kBodies({
    {"ds_load_u8", load<LoadKind{1}>},
    {"ds_load_i8", load<LoadKind{1, true}>},
    {"ds_load_u16", load<LoadKind{2}>},
    {"ds_load_i16", load<LoadKind{2, true}>},
    {"ds_load_b32", load<LoadKind{4}>},
    {"ds_load_b64", load<LoadKind{8}>},
    {"ds_load_b96", load<LoadKind{12}>},
    {"ds_load_b128", load<LoadKind{16}>},
    {"ds_load_u8_d16", load<LoadKind{1, false, Half::low}>},
    {"ds_load_i8_d16", load<LoadKind{1, true, Half::low}>},
    {"ds_load_u16_d16", load<LoadKind{2, false, Half::low}>},
    {"ds_load_u8_d16_hi", load<LoadKind{1, false, Half::high}>},
    {"ds_load_i8_d16_hi", load<LoadKind{1, true, Half::high}>},
    {"ds_load_u16_d16_hi", load<LoadKind{2, false, Half::high}>},
    {"ds_load_2addr_b32", load_2addr<4, 1>},
    {"ds_load_2addr_b64", load_2addr<8, 1>},
    {"ds_load_2addr_stride64_b32", load_2addr<4, 64>},
    {"ds_load_2addr_stride64_b64", load_2addr<8, 64>},
    {"ds_load_addtid_b32", load_addtid},
    {"ds_store_b8", store<StoreKind{1}>},
    {"ds_store_b16", store<StoreKind{2}>},
    {"ds_store_b32", store<StoreKind{4}>},
    {"ds_store_b64", store<StoreKind{8}>},
    {"ds_store_b96", store<StoreKind{12}>},
    {"ds_store_b128", store<StoreKind{16}>},
    {"ds_store_b8_d16_hi", store<StoreKind{1, true}>},
    {"ds_store_b16_d16_hi", store<StoreKind{2, true}>},
    {"ds_store_2addr_b32", store_2addr<4, 1>},
    {"ds_store_2addr_b64", store_2addr<8, 1>},
    {"ds_store_2addr_stride64_b32", store_2addr<4, 64>},
    {"ds_store_2addr_stride64_b64", store_2addr<8, 64>},
    {"ds_store_addtid_b32", store_addtid},
    {"ds_nop", [](Wave&, const Inst&) {}},
});

}  // namespace
}  // namespace rdna
