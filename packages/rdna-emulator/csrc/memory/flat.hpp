#pragma once
#include "memory/space.hpp"

namespace rdna {

struct FlatLanes {
  u32 global, shared, own;  // masks of lanes
};
FlatLanes flat_lanes(const LaneAddresses&, u32 active);

// Host address of a lane's bytes in LDS or in its scratch; traps outside.
u8* shared_lane(Wave&, const Inst&, int lane, u64 offset, u32 bytes);
u8* private_lane(Wave&, const Inst&, int lane, u64 offset, u32 bytes);

// Tells the checks of a FLAT instruction's lanes in LDS.
// Reports the lanes in LDS and in scratch to the checks.
void check_apertures(Wave&, const Inst&, Access, const FlatLanes&, const LaneAddresses&, u32 bytes, u32 row, bool high, bool returns);

}  // namespace rdna
