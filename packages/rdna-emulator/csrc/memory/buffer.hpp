#pragma once
#include "memory/space.hpp"

namespace rdna {

struct BufferLanes {
  u32 inside;   // lanes within num_records
  u32 outside;  // active lanes that are not
  u64 base;     // of the buffer and the scalar offset
};

// Fills the offsets of the lanes inside.
BufferLanes buffer_lanes(Wave&, const Inst&, u32 bytes, u32* offsets);

}  // namespace rdna
