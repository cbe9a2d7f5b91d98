// SCRATCH: each lane's own bytes, at the sum of a lane's offset, a scalar and the immediate.
#include "memory/flat.hpp"

namespace rdna {
namespace {

struct ScratchLanes {
  u8* base;
  alignas(128) i32 delta[kLanes];
};

void find_lanes(Wave& w, const Inst& i, u32 active, u32 bytes, ScratchLanes& lanes) {
  const Workgroup& group = *w.group;
  const u32* offsets = i.info->src[0].kind == OperandKind::vgpr ? static_cast<const u32*>(w.source(i, 0)) : nullptr;
  const i64 uniform = i64{i.src[2] ? static_cast<i32>(w.scalar_source(i, 2)) : 0} + static_cast<i32>(i.imm);
  lanes.base = group.scratch + u64{w.index} * kLanes * group.scratch_stride;
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    const i64 offset = uniform + (offsets ? static_cast<i32>(offsets[l]) : 0);
    if (offset < 0 || offset + bytes > group.scratch_bytes) private_lane(w, i, l, static_cast<u64>(offset), bytes);
    lanes.delta[l] = static_cast<i32>(l * static_cast<i64>(group.scratch_stride) + offset);
  }
}

void report_scratch(Wave& w, const Inst& i, Access access, u32 active, const ScratchLanes& lanes, u32 bytes, u32 row, bool high) {
  u64 offsets[kLanes];
  for (u32 left = active; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    offsets[l] = static_cast<u64>(lanes.delta[l] - l * static_cast<i64>(w.group->scratch_stride));
  }
  check_scratch(w, i, {access, active, offsets, bytes, static_cast<u16>(row), high, false});
}

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  ScratchLanes lanes;
  find_lanes(w, i, active, kKind.bytes, lanes);
  if (w.shadow) [[unlikely]] report_scratch(w, i, Access::load, active, lanes, kKind.bytes, i.dst, kKind.half == Half::high);
  load_lanes<kKind>(w, i.dst, active, lanes.base, lanes.delta, LaneLayout::apart);
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  if (!active) return;
  ScratchLanes lanes;
  find_lanes(w, i, active, kKind.bytes, lanes);
  if (w.shadow) [[unlikely]] report_scratch(w, i, Access::store, active, lanes, kKind.bytes, row_of_source(i, 1), kKind.high);
  store_lanes<kKind>(w, row_of_source(i, 1), active, lanes.base, lanes.delta, LaneLayout::apart);
}

const Registration kBodies({
    {"scratch_load_u8", load<LoadKind{1}>},
    {"scratch_load_i8", load<LoadKind{1, true}>},
    {"scratch_load_u16", load<LoadKind{2}>},
    {"scratch_load_i16", load<LoadKind{2, true}>},
    {"scratch_load_b32", load<LoadKind{4}>},
    {"scratch_load_b64", load<LoadKind{8}>},
    {"scratch_load_b96", load<LoadKind{12}>},
    {"scratch_load_b128", load<LoadKind{16}>},
    {"scratch_load_d16_u8", load<LoadKind{1, false, Half::low}>},
    {"scratch_load_d16_i8", load<LoadKind{1, true, Half::low}>},
    {"scratch_load_d16_b16", load<LoadKind{2, false, Half::low}>},
    {"scratch_load_d16_hi_u8", load<LoadKind{1, false, Half::high}>},
    {"scratch_load_d16_hi_i8", load<LoadKind{1, true, Half::high}>},
    {"scratch_load_d16_hi_b16", load<LoadKind{2, false, Half::high}>},
    {"scratch_store_b8", store<StoreKind{1}>},
    {"scratch_store_b16", store<StoreKind{2}>},
    {"scratch_store_b32", store<StoreKind{4}>},
    {"scratch_store_b64", store<StoreKind{8}>},
    {"scratch_store_b96", store<StoreKind{12}>},
    {"scratch_store_b128", store<StoreKind{16}>},
    {"scratch_store_d16_hi_b8", store<StoreKind{1, true}>},
    {"scratch_store_d16_hi_b16", store<StoreKind{2, true}>},
});

}  // namespace
}  // namespace rdna
