// GLOBAL loads and stores, and the cache controls, which have nothing to do here.
#include "memory/space.hpp"

namespace rdna {
namespace {

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  if (const u32 active = w.exec()) load_global<kKind>(w, i, active, global_addresses(w, i));
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  if (const u32 active = w.exec()) store_global<kKind>(w, i, active, global_addresses(w, i));
}

// Lane l's dword at the scalar base + 4 l.
alignas(128) const u32 kLaneOffsets[kLanes] = {0,  4,  8,  12, 16, 20, 24, 28, 32, 36,  40,  44,  48,  52,  56,  60,
                                               64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124};

LaneAddresses addresses_by_lane(Wave& w, const Inst& i) {
  return {kLaneOffsets, nullptr, (i.src[2] ? w.scalar_source64(i, 2) : 0) + static_cast<u64>(i64{static_cast<i32>(i.imm)})};
}

void nothing(Wave&, const Inst&) {}

const Registration kBodies({
    {"global_load_u8", load<LoadKind{1}>},
    {"global_load_i8", load<LoadKind{1, true}>},
    {"global_load_u16", load<LoadKind{2}>},
    {"global_load_i16", load<LoadKind{2, true}>},
    {"global_load_b32", load<LoadKind{4}>},
    {"global_load_b64", load<LoadKind{8}>},
    {"global_load_b96", load<LoadKind{12}>},
    {"global_load_b128", load<LoadKind{16}>},
    {"global_load_d16_u8", load<LoadKind{1, false, Half::low}>},
    {"global_load_d16_i8", load<LoadKind{1, true, Half::low}>},
    {"global_load_d16_b16", load<LoadKind{2, false, Half::low}>},
    {"global_load_d16_hi_u8", load<LoadKind{1, false, Half::high}>},
    {"global_load_d16_hi_i8", load<LoadKind{1, true, Half::high}>},
    {"global_load_d16_hi_b16", load<LoadKind{2, false, Half::high}>},
    {"global_store_b8", store<StoreKind{1}>},
    {"global_store_b16", store<StoreKind{2}>},
    {"global_store_b32", store<StoreKind{4}>},
    {"global_store_b64", store<StoreKind{8}>},
    {"global_store_b96", store<StoreKind{12}>},
    {"global_store_b128", store<StoreKind{16}>},
    {"global_store_d16_hi_b8", store<StoreKind{1, true}>},
    {"global_store_d16_hi_b16", store<StoreKind{2, true}>},
    {"global_load_addtid_b32", [](Wave& w, const Inst& i) {
       if (const u32 active = w.exec()) load_global<LoadKind{4}>(w, i, active, addresses_by_lane(w, i));
     }},
    {"global_store_addtid_b32", [](Wave& w, const Inst& i) {
       if (const u32 active = w.exec()) store_global<StoreKind{4}>(w, i, active, addresses_by_lane(w, i));
     }},
    {"buffer_gl0_inv", nothing},
    {"buffer_gl1_inv", nothing},
    {"s_gl1_inv", nothing},
    {"s_dcache_inv", nothing},
});

}  // namespace
}  // namespace rdna
