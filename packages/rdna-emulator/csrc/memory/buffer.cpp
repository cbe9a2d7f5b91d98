// MUBUF on raw buffers: a lane outside num_records loads 0 and stores nothing.
#include "memory/buffer.hpp"

namespace rdna {

void check_buffer(Wave& w, const Inst& i, const BufferLanes& lanes, u64 records, u64 offset, u32 bytes) {
  const u32 word = static_cast<const u32*>(w.source(i, 2))[1];
  if ((word & 0xffff0000u) || i.info->idxen) {
    trap(w, i, Fault::unsupported, -1,
         "a structured or swizzled buffer (stride " + std::to_string(word >> 16 & 0x3fff) + "); only raw buffers are executed");
  }
  // Accesses of up to a dword are in range or not; the device decides on each dword of wider ones.
  for (u32 left = bytes > 4 ? lanes.outside : 0; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    if (offset + lanes.at.low[l] + 4 <= records) {
      trap(w, i, Fault::unsupported, l,
           "a buffer access of " + std::to_string(bytes) + " bytes that the end of the buffer (num_records " +
               std::to_string(records) + ") cuts");
    }
  }
}

namespace {

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  const BufferLanes lanes = buffer_lanes(w, i, kKind.bytes);
  for (u32 left = lanes.outside; left; left &= left - 1) {
    const int l = std::countr_zero(left);
    u32& target = w.v[i.dst][l];
    if constexpr (kKind.half == Half::low) {
      target &= 0xffff0000u;
    } else if constexpr (kKind.half == Half::high) {
      target &= 0xffffu;
    } else {
      for (u32 k = 0; k < (kKind.bytes + 3) / 4; ++k) w.v[i.dst + k][l] = 0;
    }
  }
  if (w.shadow && lanes.outside) {
    check_zeroed(w, i, {Access::load, lanes.outside, nullptr, kKind.bytes, i.dst, kKind.half == Half::high, false});
  }
  if (lanes.inside) load_global<kKind>(w, i, lanes.inside, lanes.at);
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  const BufferLanes lanes = buffer_lanes(w, i, kKind.bytes);
  if (lanes.inside) store_global<kKind>(w, i, lanes.inside, lanes.at);
}

const Registration kBodies({
    {"buffer_load_u8", load<LoadKind{1}>},
    {"buffer_load_i8", load<LoadKind{1, true}>},
    {"buffer_load_u16", load<LoadKind{2}>},
    {"buffer_load_i16", load<LoadKind{2, true}>},
    {"buffer_load_b32", load<LoadKind{4}>},
    {"buffer_load_b64", load<LoadKind{8}>},
    {"buffer_load_b96", load<LoadKind{12}>},
    {"buffer_load_b128", load<LoadKind{16}>},
    {"buffer_load_d16_u8", load<LoadKind{1, false, Half::low}>},
    {"buffer_load_d16_i8", load<LoadKind{1, true, Half::low}>},
    {"buffer_load_d16_b16", load<LoadKind{2, false, Half::low}>},
    {"buffer_load_d16_hi_u8", load<LoadKind{1, false, Half::high}>},
    {"buffer_load_d16_hi_i8", load<LoadKind{1, true, Half::high}>},
    {"buffer_load_d16_hi_b16", load<LoadKind{2, false, Half::high}>},
    {"buffer_store_b8", store<StoreKind{1}>},
    {"buffer_store_b16", store<StoreKind{2}>},
    {"buffer_store_b32", store<StoreKind{4}>},
    {"buffer_store_b64", store<StoreKind{8}>},
    {"buffer_store_b96", store<StoreKind{12}>},
    {"buffer_store_b128", store<StoreKind{16}>},
    {"buffer_store_d16_hi_b8", store<StoreKind{1, true}>},
    {"buffer_store_d16_hi_b16", store<StoreKind{2, true}>},
});

}  // namespace
}  // namespace rdna
