// DS instructions that move data between lanes and touch no LDS.
#include "memory/exchange.hpp"

#include "memory/lds.hpp"

namespace rdna {

u32 swizzled_lane(u32 lane, u32 offset) {
  if (offset >= 0xe000) {  // bit reversal, for Fourier transforms
    const u32 mask = offset & 31;
    return ((__builtin_bitreverse32(lane) >> 27 >> std::popcount(mask)) | (lane & mask)) & 31;
  }
  if (offset >= 0xc000) {  // rotation
    const u32 mask = offset & 31, distance = offset >> 5 & 31;
    const u32 from = (offset & 0x400) ? lane - distance : lane + distance;
    return ((lane & mask) | (from & ~mask)) & 31;
  }
  if (offset & 0x8000) return (lane & ~3u) | (offset >> (2 * (lane & 3)) & 3);  // within four lanes
  return (((lane & offset) | offset >> 5) ^ offset >> 10) & 31;
}

namespace {

void write_active(Wave& w, const Inst& i, const u32* values) {
  for (u32 left = w.exec(); left; left &= left - 1) {
    const int l = std::countr_zero(left);
    w.v[i.dst][l] = values[l];
  }
}

void bpermute(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  const u32* addresses = static_cast<const u32*>(w.source(i, 0));
  u32 data[kLanes], result[kLanes];
  std::memcpy(data, w.source(i, 1), sizeof data);
  for (int l = 0; l < kLanes; ++l) {
    const u32 from = (addresses[l] + i.imm) / 4 % kLanes;
    result[l] = active >> from & 1 ? data[from] : 0;
  }
  write_active(w, i, result);
}

void permute(Wave& w, const Inst& i) {
  const u32* addresses = static_cast<const u32*>(w.source(i, 0));
  const u32* data = static_cast<const u32*>(w.source(i, 1));
  u32 result[kLanes] = {};
  for (u32 left = w.exec(); left; left &= left - 1) {
    const int l = std::countr_zero(left);
    result[(addresses[l] + i.imm) / 4 % kLanes] = data[l];  // of several, the highest lane stays
  }
  write_active(w, i, result);
}

void swizzle(Wave& w, const Inst& i) {
  const u32 active = w.exec();
  const u32* data = static_cast<const u32*>(w.source(i, 0));
  u32 result[kLanes];
  for (u32 l = 0; l < kLanes; ++l) {
    const u32 from = swizzled_lane(l, i.imm & 0xffff);
    result[l] = active >> from & 1 ? data[from] : 0;
  }
  write_active(w, i, result);
}

const Registration kBodies({
    {"ds_bpermute_b32", bpermute},
    {"ds_permute_b32", permute},
    {"ds_swizzle_b32", swizzle},
});

}  // namespace
}  // namespace rdna
