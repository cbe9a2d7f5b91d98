// MUBUF on raw buffers: a lane outside num_records loads 0 and stores nothing.
#include <algorithm>

#include "memory/buffer.hpp"

namespace rdna {

BufferLanes buffer_lanes(Wave& w, const Inst& i, u32 bytes, u32* offsets) {
  const InstInfo& info = *i.info;
  const u32* descriptor = static_cast<const u32*>(w.source(i, 2));
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32;
  const u32 stride = descriptor[1] >> 16 & 0x3fff, swizzle = descriptor[1] >> 30;
  if (stride || swizzle || info.idxen) {
    trap(w, i, Fault::unsupported, -1,
         "a structured or swizzled buffer (stride " + std::to_string(stride) + "); only raw buffers are executed");
  }
  const Operand& scalar = info.src[3];
  const u64 scalar_offset = scalar.kind == OperandKind::sgpr ? w.s[scalar.reg] : scalar.value;
  const u64 records = descriptor[2];
  const u32* lane_offsets = info.offen ? static_cast<const u32*>(w.source(i, 0)) : nullptr;
  BufferLanes result{0, 0, base + scalar_offset};
  for (u32 lanes = w.exec(); lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const u64 offset = u64{lane_offsets ? lane_offsets[l] : 0} + i.imm;
    const u64 end = scalar_offset + offset + bytes;
    if (offset > 0xffffffffu || end > records) {
      // Sub-dword and dword accesses are in range or not; of wider ones, each dword.
      const bool partly = bytes > 4 && scalar_offset + offset + 4 <= records && offset <= 0xffffffffu;
      if (partly) {
        trap(w, i, Fault::unsupported, l,
             "a buffer access of " + std::to_string(bytes) + " bytes that the end of the buffer (num_records " +
                 std::to_string(records) + ") cuts");
      }
      result.outside |= 1u << l;
      continue;
    }
    result.inside |= 1u << l;
    offsets[l] = static_cast<u32>(offset);
  }
  return result;
}

namespace {

template <LoadKind kKind>
void load(Wave& w, const Inst& i) {
  alignas(128) u32 offsets[kLanes] = {};
  const BufferLanes at = buffer_lanes(w, i, kKind.bytes, offsets);
  for (u32 lanes = at.outside; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    u32& target = w.v[i.dst][l];
    if constexpr (kKind.half == Half::low) {
      target &= 0xffff0000u;
    } else if constexpr (kKind.half == Half::high) {
      target &= 0xffffu;
    } else {
      for (u32 k = 0; k < (kKind.bytes + 3) / 4; ++k) w.v[i.dst + k][l] = 0;
    }
  }
  if (w.shadow && at.outside) {
    check_zeroed(w, i, {Access::load, at.outside, nullptr, kKind.bytes, i.dst, kKind.half == Half::high, false});
  }
  if (at.inside) load_global<kKind>(w, i, at.inside, {offsets, nullptr, at.base});
}

template <StoreKind kKind>
void store(Wave& w, const Inst& i) {
  alignas(128) u32 offsets[kLanes] = {};
  const BufferLanes at = buffer_lanes(w, i, kKind.bytes, offsets);
  if (at.inside) store_global<kKind>(w, i, at.inside, {offsets, nullptr, at.base});
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
