// Races in LDS, by barrier epochs; undefined bytes of LDS.
#include <algorithm>

#include "check/cells.hpp"
#include "check/plan.hpp"
#include "check/shadow.hpp"
#include "run/launch.hpp"

namespace rdna {
namespace {

struct LdsRace {
  const char* what = nullptr;
  int lane = -1;
  u32 other_wave = 0;
  u64 address = 0;
};

// Whether a lane stores what is there already: waves may store equal data to one place, as lanes may.
bool stores_what_is_there(const Wave& w, const LaneAccess& access, int lane) {
  if (access.access != Access::store) return false;
  const u32 first_byte = access.high ? 2 : 0;
  for (u32 byte = 0; byte < access.bytes; ++byte) {
    const u32 dword = w.v[access.data_row + byte / 4][lane];
    if (w.group->lds[access.addresses[lane] + byte] != static_cast<u8>(dword >> 8 * ((byte + first_byte) % 4))) return false;
  }
  return true;
}

// Sets what is known of LDS, and counts it as a change if it is one.
template <class T>
RDNA_INLINE void set(WorkgroupShadow& group, T& known, T value) {
  group.lds_version += known != value;
  known = value;
}

template <class StoresNothingNew>
RDNA_INLINE void touch(WorkgroupShadow& group, LdsCell& cell, u32 byte_mask, u64 address, Access access, u32 me, int lane, LdsRace& race,
                       StoresNothingNew stores_nothing_new) {
  const u32 epoch = group.epoch;
  const bool both_atomic = cell.atomic && access == Access::atomic;
  if (cell.write_epoch >= epoch && cell.writer != me && (cell.write_bytes & byte_mask) && !both_atomic && !stores_nothing_new())
    race = {access == Access::load ? "reads" : "writes", lane, cell.writer, address};
  const u32 mine = 1u << me;
  if (access == Access::load) {
    if (cell.read_epoch < epoch) cell.read_epoch = epoch, cell.readers = 0, cell.read_bytes = 0;
    set(group, cell.readers, cell.readers | mine);
    set(group, cell.read_bytes, static_cast<u8>(cell.read_bytes | byte_mask));
    return;
  }
  if (cell.read_epoch >= epoch && (cell.readers & ~mine) && (cell.read_bytes & byte_mask) && !both_atomic)
    race = {"writes", lane, static_cast<u32>(__builtin_ctz(cell.readers & ~mine)), address};
  if (cell.write_epoch < epoch || cell.writer != me) cell.write_epoch = epoch, cell.write_bytes = 0;
  set(group, cell.writer, static_cast<u8>(me));
  set(group, cell.write_bytes, static_cast<u8>(cell.write_bytes | byte_mask));
  set(group, cell.atomic, access == Access::atomic);
}

bool any_tainted(const WaveShadow& shadow, const LaneAccess& access) {
  for (u32 k = 0; k < (access.bytes + 3) / 4; ++k)
    if (is_tainted(shadow, access.data_row + k)) return true;
  return false;
}

// What a load brings from undefined bytes, and what a store of undefined bytes leaves.
void move_taint(WaveShadow& shadow, WorkgroupShadow& group, const Inst& i, const LaneAccess& access) {
  const bool loads = access.access == Access::load || access.returns;
  if (loads) define_loaded(shadow, i, access);
  const u32 dwords = (access.bytes + 3) / 4;
  const bool data_tainted = !loads && any_tainted(shadow, access);
  const u32 first_byte = access.high ? 2 : 0;
  const u32 all_bytes = (1u << access.bytes) - 1;
  bool loaded_undefined = false;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const u64 address = access.addresses[lane];
    const u32 at = address % kGranuleBytes;
    // The bytes may reach into the granule after.
    u16& low = group.lds_undefined[address / kGranuleBytes];
    const bool crosses = at + access.bytes > kGranuleBytes;
    u32 undefined = low >> at;
    if (crosses) undefined |= static_cast<u32>(group.lds_undefined[address / kGranuleBytes + 1]) << (kGranuleBytes - at);
    if (access.access != Access::store) {
      undefined &= all_bytes;
      if (!loads || undefined == 0) continue;
      loaded_undefined = true;
      for (u32 byte = 0; byte < access.bytes; ++byte)
        if (undefined >> byte & 1) shadow.vector_taint[access.data_row + byte / 4][(byte + first_byte) % 4] |= 1u << lane;
      continue;
    }
    u32 stored = 0;
    if (data_tainted)
      for (u32 byte = 0; byte < access.bytes; ++byte)
        stored |= (shadow.vector_taint[access.data_row + byte / 4][(byte + first_byte) % 4] >> lane & 1) << byte;
    set(group, low, static_cast<u16>((low & ~(all_bytes << at)) | stored << at));
    if (crosses) {
      u16& next = group.lds_undefined[address / kGranuleBytes + 1];
      set(group, next, static_cast<u16>((next & ~(all_bytes >> (kGranuleBytes - at))) | stored >> (kGranuleBytes - at)));
    }
  }
  if (loaded_undefined)
    for (u32 k = 0; k < dwords; ++k) update_tainted(shadow, access.data_row + k);
}

// Whether every lane touches one whole granule.
bool whole_granules(const LaneAccess& access) {
  if (access.bytes != kGranuleBytes) return false;
  u64 all = 0;
  if (access.lanes == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane) all |= access.addresses[lane];
  } else {
    for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) all |= access.addresses[__builtin_ctz(lanes)];
  }
  return all % kGranuleBytes == 0;
}

u32 owner_tag(const WorkgroupShadow& group, u32 me) { return group.epoch << 5 | me; }

// Whether this wave itself has stored every granule whole, defined, and in this epoch: what a wave does with its own part
// of LDS. Another wave's access would be a race with that store, so that the load need not be noted.
bool owns_all(const WorkgroupShadow& group, const LaneAccess& access, u32 me) {
  const u32 tag = owner_tag(group, me);
  const u32* owners = group.lds_owners.data();
  u32 differ = 0;
  if (access.lanes == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane) differ |= owners[access.addresses[lane] / kGranuleBytes] ^ tag;
  } else {
    for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1)
      differ |= owners[access.addresses[__builtin_ctz(lanes)] / kGranuleBytes] ^ tag;
  }
  return differ == 0;
}

void note_owner(WorkgroupShadow& group, const LaneAccess& access, u32 tag) {
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const u64 address = access.addresses[__builtin_ctz(lanes)];
    set(group, group.lds_owners[address / kGranuleBytes], tag);
    set(group, group.lds_owners[(address + access.bytes - 1) / kGranuleBytes], tag);
  }
}

// Nothing undefined is loaded or stored, the usual case for whole granules. Returns whether that was so.
bool moves_defined(WaveShadow& shadow, WorkgroupShadow& group, const LaneAccess& access) {
  if (any_tainted(shadow, access)) return false;
  u16* undefined = group.lds_undefined.data();
  if (access.access == Access::store) {
    for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1)
      set(group, undefined[access.addresses[__builtin_ctz(lanes)] / kGranuleBytes], u16{0});
    return true;
  }
  u32 any = 0;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) any |= undefined[access.addresses[__builtin_ctz(lanes)] / kGranuleBytes];
  return any == 0;
}

// Loads of granules that no other wave has written in this epoch, the usual case. Returns whether that was so.
bool reads_quietly(WorkgroupShadow& group, const LaneAccess& access, u32 me) {
  const u32 epoch = group.epoch;
  const u8* split = group.lds_split.data();
  LdsCell* cells = group.lds_granules.data();
  u64 previous = ~0ull;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const u64 granule = access.addresses[__builtin_ctz(lanes)] / kGranuleBytes;
    if (granule == previous) continue;
    previous = granule;
    LdsCell& cell = cells[granule];
    if (split[granule] | (cell.write_epoch >= epoch && cell.writer != me)) return false;
    set(group, cell.readers, (cell.read_epoch >= epoch ? cell.readers : 0) | 1u << me);
    set(group, cell.read_epoch, std::max(cell.read_epoch, epoch));
    cell.read_bytes = 0xf;
  }
  return true;
}

LdsMemo* memo_of(WaveShadow& shadow, const Inst& i) {
  const u16 number = shadow.plan->insts[static_cast<std::size_t>(&i - shadow.launch->insts)].memo;
  return number == kNoMemo ? nullptr : &shadow.lds_memos[number];
}

void follow(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  WorkgroupShadow& group = *shadow.group;
  const u32 checks = shadow.launch->checks;
  if ((checks & kCheckCollisions) && access.access == Access::store) check_collisions(w, i, access);
  const bool whole = whole_granules(access);
  if (access.access != Access::load) {
    note_owner(group, access, whole && access.access == Access::store && !any_tainted(shadow, access) ? owner_tag(group, w.index) : 0);
  } else if (whole && owns_all(group, access, w.index) && !any_tainted(shadow, access)) {
    return;
  }
  if ((checks & kCheckUninitialised) && !(whole && moves_defined(shadow, group, access))) move_taint(shadow, group, i, access);
  if (!(checks & kCheckRaces)) return;
  if (whole && access.access == Access::load && reads_quietly(group, access, w.index)) return;
  LdsRace race;
  u64 previous = ~0ull;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    if (access.addresses[lane] == previous) continue;  // a broadcast
    previous = access.addresses[lane];
    for_lds_cells(group, access.addresses[lane], access.bytes, [&](LdsCell& cell, u32 byte_mask, u64 address) RDNA_LAMBDA_INLINE {
      touch(group, cell, byte_mask, address, access.access, w.index, lane, race,
            [&] { return stores_what_is_there(w, access, lane); });
    });
  }
  if (!race.what) return;
  char text[160];
  std::snprintf(text, sizeof text, "race: %s LDS byte 0x%llx that wave %u of the workgroup touched with no barrier in between", race.what,
                static_cast<unsigned long long>(race.address), race.other_wave);
  report_finding(w, i, race.lane, text);
}

}  // namespace

bool repeats_lds(Wave& w, const Inst& i, const LaneAccess& access, const u32x& addresses) {
  WaveShadow& shadow = *w.shadow;
  const LdsMemo* memo = memo_of(shadow, i);
  if (!memo || memo->version != shadow.group->lds_version || shadow.model || any_tainted(shadow, access)) return false;
  const u16x narrow = convert<u16x>(addresses);
  if (__builtin_reduce_or(narrow ^ memo->addresses) != 0) return false;
  if (shadow.checks & kCheckRaces) note_lds(shadow, access, narrow);
  return true;
}

void check_lds(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  if (shadow.model) model_lds(*shadow.model, shadow.launch->model, access);
  alignas(64) u16 narrow[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) narrow[lane] = static_cast<u16>(access.addresses[lane]);
  const u16x addresses = *reinterpret_cast<const u16x*>(narrow);
  if (shadow.checks & kCheckRaces) note_lds(shadow, access, addresses);
  const bool defined = !any_tainted(shadow, access);
  follow(w, i, access);
  LdsMemo* memo = access.lanes == ~0u ? memo_of(shadow, i) : nullptr;
  const bool data_matters = access.access == Access::store && !lanes_ascend(access);
  if (!memo || !defined || data_matters || any_tainted(shadow, access)) return;
  *memo = {addresses, shadow.group->lds_version};
}

}  // namespace rdna
