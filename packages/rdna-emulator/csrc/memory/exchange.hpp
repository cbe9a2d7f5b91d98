// ds_swizzle_b32, which the checks follow as well.
#pragma once
#include "core/machine.hpp"

namespace rdna {

// The lane whose value ds_swizzle_b32 with that offset brings to `lane`.
u32 swizzled_lane(u32 lane, u32 offset);

}  // namespace rdna
