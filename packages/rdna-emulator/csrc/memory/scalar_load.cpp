// SMEM: dwords to consecutive scalar registers.
#include "memory/global.hpp"

namespace rdna {
namespace {

// The lane's part of GlobalSite's pattern: one lane, of all the bytes.
RDNA_INLINE const u8* locate_scalar(Wave& w, const Inst& i, u64 address, u32 bytes) {
  alignas(128) u32 low[kLanes], high[kLanes];
  GlobalSite& site = global_site(w, i);
  if (site.active == 1 && address - site.begin <= site.room && ((address - site.origin) & 127) == site.phase) [[likely]] {
    ++site.executions;
    count_lines(*w.group, site, address);
    return reinterpret_cast<const u8*>(address);
  }
  low[0] = static_cast<u32>(address), high[0] = static_cast<u32>(address >> 32);
  u64 unused[kLanes];
  locate_slowly(w, i, site, 1, {low, high, 0}, bytes, false, unused);
  return reinterpret_cast<const u8*>(address);
}

u64 offset_of(const Wave& w, const Inst& i) {
  return static_cast<u64>(i64{static_cast<i32>(i.imm)}) + w.scalar_source(i, 1);
}

template <u32 kDwords>
void load_from(Wave& w, const Inst& i, u64 address) {
  const u8* from = locate_scalar(w, i, address, kDwords * 4);
  if (w.shadow) [[unlikely]] check_scalar_load(w, i, address, kDwords * 4);
  std::memcpy(&w.s[i.dst], from, kDwords * 4);
}

template <u32 kDwords>
void load(Wave& w, const Inst& i) {
  load_from<kDwords>(w, i, (w.scalar_source64(i, 0) + offset_of(w, i)) & ~u64{3});
}

// A dword outside num_records is 0.
template <u32 kDwords>
void buffer_load(Wave& w, const Inst& i) {
  const u32* descriptor = static_cast<const u32*>(w.source(i, 0));
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32;
  const u32 stride = descriptor[1] >> 16 & 0x3fff;
  const u64 size = stride ? u64{descriptor[2]} * stride : descriptor[2];
  const u64 offset = offset_of(w, i) & ~u64{3};
  if (offset + kDwords * 4 <= size) return load_from<kDwords>(w, i, base + offset);
  u32 values[kDwords] = {};
  for (u32 k = 0; k < kDwords && offset + 4 * k + 4 <= size; ++k) {
    std::memcpy(&values[k], locate_scalar(w, i, base + offset + 4 * k, 4), 4);
    global_site(w, i).forget_span();  // its pattern is that of a part
  }
  std::memcpy(&w.s[i.dst], values, sizeof values);
}

const Registration kBodies({
    {"s_load_b32", load<1>},
    {"s_load_b64", load<2>},
    {"s_load_b128", load<4>},
    {"s_load_b256", load<8>},
    {"s_load_b512", load<16>},
    {"s_buffer_load_b32", buffer_load<1>},
    {"s_buffer_load_b64", buffer_load<2>},
    {"s_buffer_load_b128", buffer_load<4>},
    {"s_buffer_load_b256", buffer_load<8>},
    {"s_buffer_load_b512", buffer_load<16>},
});

}  // namespace
}  // namespace rdna
