// Undefined bytes of scratch memory: what is spilled comes back as defined as it was.
#include <algorithm>

#include "check/shadow.hpp"
#include "run/launch.hpp"

namespace rdna {

void check_scratch(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  if (!(shadow.checks & kCheckUninitialised)) return;
  u64 end = 0;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) end = std::max(end, access.addresses[__builtin_ctz(lanes)] + access.bytes);
  if (end > w.group->scratch_bytes) return;  // traps
  std::vector<u32>& undefined = shadow.scratch_undefined;
  if (undefined.size() < end) undefined.resize(end, ~0u);
  const u32 first_byte = access.high ? 2 : 0;
  if (access.access == Access::load || access.returns) define_loaded(shadow, i, access);
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const u32 bit = 1u << lane;
    for (u32 byte = 0; byte < access.bytes; ++byte) {
      u32& memory = undefined[access.addresses[lane] + byte];
      u32& value = shadow.vector_taint[access.data_row + byte / 4][(byte + first_byte) % 4];
      if (access.access == Access::load) {
        value |= memory & bit;
      } else if (access.access == Access::store) {
        memory = (memory & ~bit) | (value & bit);
      }
    }
  }
  if (access.access != Access::load) return;
  for (u32 dword = 0; dword < (access.bytes + 3) / 4; ++dword) update_tainted(shadow, access.data_row + dword);
}

}  // namespace rdna
