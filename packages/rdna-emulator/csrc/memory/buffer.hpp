#pragma once
#include "memory/space.hpp"

namespace rdna {

struct BufferLanes {
  u32 inside;   // lanes within num_records
  u32 outside;  // active lanes that are not
  LaneAddresses at;
};

// Traps for what is no raw buffer, and where the buffer's end cuts a lane's dwords.
void check_buffer(Wave&, const Inst&, const BufferLanes&, u64 records, u64 offset, u32 bytes);

alignas(128) inline const u32 kNoOffsets[kLanes] = {};

RDNA_INLINE BufferLanes buffer_lanes(Wave& w, const Inst& i, u32 bytes) {
  const InstInfo& info = *i.info;
  const u32* descriptor = static_cast<const u32*>(w.source(i, 2));
  const Operand& scalar = info.src[3];
  const u64 offset = i.imm + (scalar.kind == OperandKind::sgpr ? w.s[scalar.reg] : scalar.value);
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32;
  const u64 records = descriptor[2];
  const u32* low = info.offen ? static_cast<const u32*>(w.source(i, 0)) : kNoOffsets;
  const u32 active = w.exec();
  // The last byte of a lane is at offset + low + bytes - 1, below `records`.
  const u64 end = offset + bytes;
  u32 beyond = ~0u;
  if (end <= records) beyond = lane_bits(*reinterpret_cast<const u32x*>(low) > static_cast<u32>(records - end));
  const BufferLanes lanes{active & ~beyond, active & beyond, {low, nullptr, base + offset}};
  if ((descriptor[1] & 0xffff0000u) || info.idxen || lanes.outside) [[unlikely]] {
    check_buffer(w, i, lanes, records, offset, bytes);
  }
  return lanes;
}

}  // namespace rdna
