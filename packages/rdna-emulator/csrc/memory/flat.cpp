// FLAT loads and stores: an address in an aperture is LDS or scratch, any other is global memory.
#include "memory/flat.hpp"

namespace rdna {

u8* shared_lane(Wave& w, const Inst& i, int lane, u64 offset, u32 bytes) {
  const Workgroup& group = *w.group;
  if (offset > group.lds_bytes || bytes > group.lds_bytes - offset) {
    trap(w, i, Fault::memory, lane,
         "access of " + std::to_string(bytes) + " bytes at LDS byte " + std::to_string(offset) + ", past the workgroup's " +
             std::to_string(group.lds_bytes) + " bytes");
  }
  return group.lds + offset;
}

u8* private_lane(Wave& w, const Inst& i, int lane, u64 offset, u32 bytes) {
  const Workgroup& group = *w.group;
  if (offset > group.scratch_bytes || bytes > group.scratch_bytes - offset) {
    trap(w, i, Fault::memory, lane,
         "access of " + std::to_string(bytes) + " bytes at scratch byte " + std::to_string(static_cast<i64>(offset)) +
             ", outside the lane's " + std::to_string(group.scratch_bytes) + " bytes");
  }
  return group.scratch + (u64{w.index} * kLanes + static_cast<u64>(lane)) * group.scratch_stride + offset;
}

FlatLanes flat_lanes(const LaneAddresses& at, u32 active) {
  FlatLanes result{active, 0, 0};
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const u64 aperture = at.of(l) & kApertureMask;
    if (aperture == kSharedBase) result.shared |= 1u << l;
    if (aperture == kPrivateBase) result.own |= 1u << l;
  }
  result.global &= ~(result.shared | result.own);
  return result;
}

void check_apertures(Wave& w, const Inst& i, Access access, const FlatLanes& lanes, const LaneAddresses& at, u32 bytes, u32 row,
                     bool high, bool returns) {
  if (!w.shadow || !(lanes.shared | lanes.own)) return;
  u64 offsets[kLanes];
  for (u32 left = lanes.shared | lanes.own; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    offsets[l] = at.of(l) & 0xffffffffu;
  }
  if (lanes.shared) check_lds(w, i, {access, lanes.shared, offsets, bytes, static_cast<u16>(row), high, returns});
  if (lanes.own) check_scratch(w, i, {access, lanes.own, offsets, bytes, static_cast<u16>(row), high, returns});
}

namespace {

u8* lane_of(Wave& w, const Inst& i, const FlatLanes& lanes, const LaneAddresses& at, int lane, u32 bytes) {
  const u64 offset = at.of(lane) & 0xffffffffu;
  return lanes.shared >> lane & 1 ? shared_lane(w, i, lane, offset, bytes) : private_lane(w, i, lane, offset, bytes);
}

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  LaneAddresses at = global_addresses(w, i);
  const FlatLanes lanes = flat_lanes(at, active);
  alignas(128) u32 address_rows[2][kLanes];
  if (lanes.shared | lanes.own) {  // the result may replace the addresses of lanes that are still to come
    std::memcpy(address_rows, at.low, sizeof address_rows);
    at.low = address_rows[0], at.high = address_rows[1];
  }
  if (lanes.global) load_global<kKind>(w, i, lanes.global, at);
  check_apertures(w, i, Access::load, lanes, at, kKind.bytes, i.dst, kKind.half == Half::high, false);
  for (u32 left = lanes.shared | lanes.own; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    load_lanes<kKind>(w, i.dst, 1u << l, lane_of(w, i, lanes, at, l, kKind.bytes), kNoDelta, LaneLayout::apart);
  }
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  const LaneAddresses at = global_addresses(w, i);
  const FlatLanes lanes = flat_lanes(at, active);
  const u32 row = row_of_source(i, 1);
  if (lanes.global) store_global<kKind>(w, i, lanes.global, at);
  check_apertures(w, i, Access::store, lanes, at, kKind.bytes, row, kKind.high, false);
  for (u32 left = lanes.shared | lanes.own; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    u8* target = lane_of(w, i, lanes, at, l, kKind.bytes);
    if (lanes.shared >> l & 1) note_store<kKind>(w, row, 1u << l, target, kNoDelta);
    store_lanes<kKind>(w, row, 1u << l, target, kNoDelta, LaneLayout::apart);
  }
}

const Registration kBodies({
    {"flat_load_u8", load<LoadKind{1}>},
    {"flat_load_i8", load<LoadKind{1, true}>},
    {"flat_load_u16", load<LoadKind{2}>},
    {"flat_load_i16", load<LoadKind{2, true}>},
    {"flat_load_b32", load<LoadKind{4}>},
    {"flat_load_b64", load<LoadKind{8}>},
    {"flat_load_b96", load<LoadKind{12}>},
    {"flat_load_b128", load<LoadKind{16}>},
    {"flat_load_d16_u8", load<LoadKind{1, false, Half::low}>},
    {"flat_load_d16_i8", load<LoadKind{1, true, Half::low}>},
    {"flat_load_d16_b16", load<LoadKind{2, false, Half::low}>},
    {"flat_load_d16_hi_u8", load<LoadKind{1, false, Half::high}>},
    {"flat_load_d16_hi_i8", load<LoadKind{1, true, Half::high}>},
    {"flat_load_d16_hi_b16", load<LoadKind{2, false, Half::high}>},
    {"flat_store_b8", store<StoreKind{1}>},
    {"flat_store_b16", store<StoreKind{2}>},
    {"flat_store_b32", store<StoreKind{4}>},
    {"flat_store_b64", store<StoreKind{8}>},
    {"flat_store_b96", store<StoreKind{12}>},
    {"flat_store_b128", store<StoreKind{16}>},
    {"flat_store_d16_hi_b8", store<StoreKind{1, true}>},
    {"flat_store_d16_hi_b16", store<StoreKind{2, true}>},
});

}  // namespace
}  // namespace rdna
