// DPP: which lane each lane reads, and which lanes take part.
#pragma once
#include "valu/lanes.hpp"

namespace rdna {

// Lane l of an instruction with DPP reads lane `source[l]`, where `valid` says that there is such a lane.
struct alignas(128) LaneMap {
  u32 source[kLanes];
  u32 valid;
  bool exists;
};

// The maps of all dpp_ctrl values: quad_perm, row_shl, row_shr, row_ror, row_mirror, row_half_mirror, row_share, row_xmask.
struct LaneMaps {
  static constexpr u32 kControls = 0x170;
  LaneMap maps[kControls];

  LaneMaps() {
    for (u32 control = 0; control < kControls; ++control) {
      LaneMap& map = maps[control];
      map.valid = 0;
      map.exists = control < 0x100 || control == 0x140 || control == 0x141 || control >= 0x150;
      const u32 n = control & 15;
      if (control > 0x100 && control < 0x130) map.exists = n != 0;
      for (u32 lane = 0; lane < kLanes; ++lane) {
        const u32 row = lane & 16, in_row = lane & 15;
        u32 source = lane;
        bool valid = true;
        if (control < 0x100) {
          source = (lane & ~3u) | (control >> 2 * (lane & 3) & 3);
        } else {
          switch (control >> 4) {
            case 0x10: source = row | ((in_row + n) & 15); valid = in_row + n < 16; break;
            case 0x11: source = row | ((in_row - n) & 15); valid = in_row >= n; break;
            case 0x12: source = row | ((in_row - n) & 15); break;
            case 0x14: source = lane ^ (n == 0 ? 15 : 7); break;
            case 0x15: source = row | n; break;
            default: source = lane ^ n; break;
          }
        }
        map.source[lane] = source;
        map.valid |= u32{valid} << lane;
      }
    }
  }
};
inline const LaneMaps lane_maps;

RDNA_INLINE u32x dpp8_source(u32 control) {
  return (kLaneIndex & ~7u) | ((u32x(control) >> ((kLaneIndex & 7u) * 3u)) & 7u);
}

inline u32 lanes_of_masks(const DppControl& dpp) {
  u32 row = 0;
  for (int bank = 0; bank < 4; ++bank) row |= dpp.bank_mask >> bank & 1 ? 0xfu << 4 * bank : 0u;
  return (dpp.row_mask & 1 ? row : 0u) | (dpp.row_mask & 2 ? row << 16 : 0u);
}

// The first source as DPP moves it, and the lanes that take part.
struct Moved {
  u32x value;
  u32 lanes;
};

RDNA_INLINE Moved moved(const Wave& w, const InstInfo& info) {
  const DppControl& dpp = info.dpp;
  const u32x from = *reinterpret_cast<const u32x*>(w.v[info.src[0].reg]);
  const u32 exec = w.exec();
  if (dpp.kind == DppControl::Kind::dpp8) {
    const u32x source = dpp8_source(dpp.control);
    u32x value = permute(from, source);
    if (exec != ~0u && !dpp.fetch_inactive) value = ((u32x(exec) >> source) & 1u) != 0u ? value : u32x(0u);
    return {value, ~0u};
  }
  const LaneMap& map = lane_maps.maps[dpp.control];
  const u32x source = *reinterpret_cast<const u32x*>(map.source);
  u32x value = permute(from, source);
  u32 valid = map.valid, lanes = ~0u;
  if (exec != ~0u && !dpp.fetch_inactive) valid &= lane_bits((u32x(exec) >> source) & 1u);
  if (valid != ~0u) {
    if (dpp.bound_control) {
      value = lane_mask(valid) ? value : u32x(0u);
    } else {
      lanes = valid;
    }
  }
  if ((dpp.row_mask & dpp.bank_mask) != 0xf) lanes &= lanes_of_masks(dpp);
  return {value, lanes};
}

}  // namespace rdna
