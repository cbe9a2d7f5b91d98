// Races in global memory, by vector clocks; lanes that collide.
#include <algorithm>

#include "check/cells.hpp"
#include "check/plan.hpp"
#include "check/shadow.hpp"

namespace rdna {
namespace {

bool ordered(const WaveShadow& shadow, const Stamp& stamp) {
  return stamp.wave == 0 || stamp.wave == shadow.id || shadow.known.of(stamp.wave) >= stamp.clock;
}

std::string race_text(const char* what, u64 address, const Stamp& other, const char* how) {
  char text[160];
  std::snprintf(text, sizeof text, "race: %s 0x%llx, which wave %u of the launch %s with no barrier or atomic in between", what,
                static_cast<unsigned long long>(address), static_cast<u32>(other.wave) - 1, how);
  return text;
}

struct Race {
  std::string text;
  int lane = -1;
};

RDNA_INLINE void touch_read(WaveShadow& shadow, GlobalCell& cell, u64 address, Stamp mine, int lane, Race& race) {
  if (cell.write.wave != 0 && (cell.write.bytes & mine.bytes) && !mine.atomic && race.lane < 0 && !ordered(shadow, cell.write))
    race = {race_text("reads", address, cell.write, "wrote"), lane};
  for (Stamp& slot : cell.reads) {
    if (slot.wave == mine.wave && slot.clock == mine.clock) {
      slot.bytes |= mine.bytes;
      slot.atomic &= mine.atomic;
      return;
    }
    if (slot.wave == 0 || ordered(shadow, slot)) {
      slot = mine;
      return;
    }
  }
  cell.reads[1] = mine;
}

RDNA_INLINE void touch_write(WaveShadow& shadow, GlobalCell& cell, u64 address, Stamp mine, int lane, Race& race) {
  const bool both_atomic = cell.write.atomic && mine.atomic;
  if (race.lane < 0 && (cell.write.bytes & mine.bytes) && !both_atomic && !ordered(shadow, cell.write))
    race = {race_text("writes", address, cell.write, "wrote"), lane};
  for (const Stamp& read : cell.reads)
    if (race.lane < 0 && (read.bytes & mine.bytes) && !(read.atomic && mine.atomic) && !ordered(shadow, read))
      race = {race_text("writes", address, read, "read"), lane};
  if (cell.write.wave == mine.wave && cell.write.clock == mine.clock && cell.write.atomic == mine.atomic) mine.bytes |= cell.write.bytes;
  cell.write = mine;
}

// Notes whole dwords that are only read; lanes beside each other at once. Returns the lanes of pages whose cells are in use.
u32 note_reads(GlobalPages& pages, const LaneAccess& access) {
  u32 others = 0;
  for (u32 lanes = access.lanes; lanes;) {
    const int first = __builtin_ctz(lanes);
    u32 run = 0;
    u64 address = access.addresses[first], end = address;
    for (int lane = first; lane < kLanes && lanes >> lane & 1 && access.addresses[lane] == end; ++lane) run |= 1u << lane, end += access.bytes;
    lanes &= ~run;
    if ((address | end) % 4 != 0) {
      others |= run;
      continue;
    }
    while (address < end) {
      const u64 number = address / kPageBytes, stop = std::min(end, (number + 1) * kPageBytes);
      PageReads* reads = pages.reads_of(number);
      if (reads == nullptr) {
        others |= run;
        break;
      }
      u32 dword = static_cast<u32>(address % kPageBytes / 4), count = static_cast<u32>((stop - address) / 4);
      while (count) {
        const u32 here = std::min(count, 64 - dword % 64);
        reads->dwords[dword / 64] |= (here == 64 ? ~0ull : (1ull << here) - 1) << dword % 64;
        dword += here, count -= here;
      }
      address = stop;
    }
  }
  return others;
}

// The first lane that stores to each dword: an open-addressed table, at most half full.
class LaneOfDword {
 public:
  int insert(u64 address, int lane) {
    for (u32 at = static_cast<u32>(address / 4 * 0x9e3779b1u) % kSlots;; at = (at + 1) % kSlots) {
      if (lanes_[at] < 0) {
        addresses_[at] = address;
        lanes_[at] = static_cast<i8>(lane);
        return lane;
      }
      if (addresses_[at] == address) return lanes_[at];
    }
  }
  LaneOfDword() { std::memset(lanes_, -1, sizeof lanes_); }

 private:
  static constexpr u32 kSlots = 256;
  u64 addresses_[kSlots];
  i8 lanes_[kSlots];
};

}  // namespace

void use_cells(GlobalPage& page) {
  page.in_cells = true;
  for (const PageReads& reads : page.reads) {
    for (u32 granule = 0; granule < kPageGranules; ++granule) {
      const u64 dwords = reads.dwords[granule / 16] >> granule % 16 * 4 & 0xf;
      if (dwords == 0) continue;
      Stamp stamp;
      stamp.wave = reads.wave;
      stamp.clock = reads.clock;
      for (u32 k = 0; k < 4; ++k)
        if (dwords >> k & 1) stamp.bytes |= 0xfu << 4 * k;
      Stamp(&slots)[2] = granule_of(page, granule).reads;
      slots[slots[0].wave == 0 || slots[0].wave == stamp.wave ? 0 : 1] = stamp;
    }
  }
  page.reads.clear();
}

bool lanes_ascend(const LaneAccess& access) {
  u64 previous = 0;
  bool ascend = true;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const u64 address = access.addresses[__builtin_ctz(lanes)];
    ascend &= address >= previous;
    previous = address + access.bytes;
  }
  return ascend;
}

void check_collisions(Wave& w, const Inst& i, const LaneAccess& access) {
  if (lanes_ascend(access)) return;
  LaneOfDword lane_of;
  const u32 shift = access.high ? 16 : 0;
  const u32 mask = access.bytes >= 4 ? ~0u : (1u << 8 * access.bytes) - 1;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    for (u32 dword = 0; dword < std::max(access.bytes / 4, 1u); ++dword) {
      const u64 address = access.addresses[lane] + 4 * dword;
      const int first = lane_of.insert(address, lane);
      if (first == lane) continue;
      const u32 first_dword = static_cast<u32>((address - access.addresses[first]) / 4);
      const u32 mine = w.v[access.data_row + dword][lane] >> shift & mask;
      const u32 other = w.v[access.data_row + first_dword][first] >> shift & mask;
      if (mine != other) {
        char text[160];
        std::snprintf(text, sizeof text, "collision: lanes %d and %d store 0x%x and 0x%x to one place, 0x%llx", first, lane, other,
                      mine, static_cast<unsigned long long>(address));
        report_finding(w, i, lane, text);
        return;
      }
    }
  }
}

void check_global(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  LaunchShadow& launch = *shadow.launch;
  const bool scalar = i.info->dst[0].kind == OperandKind::sgpr;
  if (shadow.model && !scalar) model_global(*shadow.model, launch.model, shadow.group->model, access, false);
  if (launch.checks & kCheckUninitialised) {
    if ((access.access == Access::load || access.returns) && !scalar) define_loaded(shadow, i, access);
    if (access.access != Access::load) check_address_taint(w, i, i.info->src[1], access.lanes);
  }
  if ((launch.checks & kCheckCollisions) && access.access == Access::store) check_collisions(w, i, access);
  if (!(launch.checks & kCheckRaces)) return;

  const bool is_load = access.access == Access::load;
  const bool device_load = is_load && i.info->glc;  // what an atomic load becomes
  if (access.access == Access::store) note_global(shadow, access);
  Stamp mine;
  mine.wave = shadow.id;
  mine.clock = shadow.clock;
  const bool guess = is_load && shadow.plan->insts[static_cast<std::size_t>(&i - launch.insts)].guess;
  mine.atomic = device_load || guess || access.access == Access::atomic;
  Race race;
  {
    GlobalPages pages(shadow);
    for (u32 lanes = is_load && !mine.atomic ? note_reads(pages, access) : access.lanes; lanes; lanes &= lanes - 1) {
      const int lane = __builtin_ctz(lanes);
      for_global_cells(pages, access.addresses[lane], access.bytes, is_load, [&](GlobalCell& cell, u32 byte_mask, u64 address) RDNA_LAMBDA_INLINE {
        mine.bytes = byte_mask & kWholeGranule;
        if (device_load && cell.write.wave != 0 && cell.write.wave != shadow.id) {
          const std::lock_guard lock(launch.mutex);
          shadow.acquired.join(launch.known_by[cell.write.wave]);
          shadow.acquired.raise(cell.write.wave, cell.write.clock);
        }
        if (is_load) {
          touch_read(shadow, cell, address, mine, lane, race);
        } else {
          touch_write(shadow, cell, address, mine, lane, race);
        }
      });
    }
  }
  if (access.access == Access::atomic) {
    for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) publish(w, access.addresses[__builtin_ctz(lanes)]);
    const u32 old_clock = shadow.clock++;
    restamp_outstanding(shadow, old_clock, 0);
  }
  if (race.lane >= 0) report_finding(w, i, race.lane, race.text);
}

}  // namespace rdna
