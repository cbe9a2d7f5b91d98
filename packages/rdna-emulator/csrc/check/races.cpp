// Races between waves, in LDS by barrier epochs and in global memory by vector clocks.
#include <algorithm>

#include "check/shadow.hpp"

namespace rdna {

u32 VectorClock::of(u32 wave) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), std::pair{wave, 0u});
  return at != entries_.end() && at->first == wave ? at->second : 0;
}

void VectorClock::raise(u32 wave, u32 clock) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), std::pair{wave, 0u});
  if (at != entries_.end() && at->first == wave) {
    at->second = std::max(at->second, clock);
  } else {
    entries_.insert(at, {wave, clock});
  }
}

void VectorClock::join(const VectorClock& other) {
  if (other.entries_.empty()) return;
  std::vector<std::pair<u32, u32>> merged;
  merged.reserve(entries_.size() + other.entries_.size());
  auto a = entries_.begin();
  auto b = other.entries_.begin();
  while (a != entries_.end() || b != other.entries_.end()) {
    if (b == other.entries_.end() || (a != entries_.end() && a->first < b->first)) {
      merged.push_back(*a++);
    } else if (a == entries_.end() || b->first < a->first) {
      merged.push_back(*b++);
    } else {
      merged.push_back({a->first, std::max(a->second, b->second)});
      ++a, ++b;
    }
  }
  entries_ = std::move(merged);
}

namespace {

constexpr u64 kPageBytes = 4096;

u32 bytes_of(u64 address, u32 bytes, u64 dword) {
  const u64 low = std::max(address, dword * 4), high = std::min(address + bytes, dword * 4 + 4);
  return ((1u << (high - low)) - 1) << (low - dword * 4);
}

GlobalShard& shard_of(LaunchShadow& launch, u64 page) { return launch.global[page % kShards]; }

GlobalDword* dwords_of(GlobalShard& shard, u64 page) {
  auto& dwords = shard.pages[page];
  if (!dwords) dwords = std::make_unique<GlobalDword[]>(kPageBytes / 4);
  return dwords.get();
}

bool ordered(const WaveShadow& shadow, const Stamp& stamp) {
  return stamp.wave == 0 || stamp.wave == shadow.id || shadow.known.of(stamp.wave) >= stamp.clock;
}

bool is_device_load(const Inst& i, Access access) { return access == Access::load && i.info->glc; }

std::string race_text(const char* what, u64 address, const Stamp& other, const char* how) {
  char text[160];
  std::snprintf(text, sizeof text, "race: %s 0x%llx, which wave %u of the launch %s with no barrier or atomic in between", what,
                static_cast<unsigned long long>(address), other.wave - 1, how);
  return text;
}

// Returns the text of a race, or nothing.
std::string touch(WaveShadow& shadow, GlobalDword& dword, u64 address, Access access, u32 byte_mask, bool synchronises) {
  const bool conflicts_with_write = (dword.write.byte_mask & byte_mask) && !(synchronises && dword.write.atomic);
  std::string text;
  if (conflicts_with_write && !ordered(shadow, dword.write) && !(access == Access::load && synchronises))
    text = race_text(access == Access::load ? "reads" : "writes", address, dword.write, "wrote");
  Stamp mine;
  mine.wave = shadow.id;
  mine.clock = shadow.clock;
  mine.atomic = synchronises;
  mine.byte_mask = byte_mask;
  if (access == Access::load) {
    Stamp* slot = &dword.reads[0];
    if (slot->wave != shadow.id && !ordered(shadow, *slot)) slot = &dword.reads[1];
    *slot = mine;
    return text;
  }
  for (const Stamp& read : dword.reads)
    if (text.empty() && (read.byte_mask & byte_mask) && !(read.atomic && synchronises) && !ordered(shadow, read))
      text = race_text("writes", address, read, "read");
  if (dword.write.wave == shadow.id && dword.write.clock == shadow.clock && !synchronises) mine.byte_mask |= dword.write.byte_mask;
  dword.write = mine;
  return text;
}

void check_collisions(Wave& w, const Inst& i, const LaneAccess& access) {
  u64 previous = 0;
  bool increasing = true;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const u64 address = access.addresses[__builtin_ctz(lanes)];
    increasing &= address >= previous;
    previous = address + access.bytes;
  }
  if (increasing) return;
  std::unordered_map<u64, int> lane_of;
  const u32 shift = access.high ? 16 : 0;
  const u32 mask = access.bytes >= 4 ? ~0u : (1u << 8 * access.bytes) - 1;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    for (u32 dword = 0; dword < std::max(access.bytes / 4, 1u); ++dword) {
      const auto [at, fresh] = lane_of.emplace(access.addresses[lane] + 4 * dword, lane);
      if (fresh) continue;
      const u32 first_dword = static_cast<u32>((at->first - access.addresses[at->second]) / 4);
      const u32 mine = w.v[access.data_row + dword][lane] >> shift & mask;
      const u32 other = w.v[access.data_row + first_dword][at->second] >> shift & mask;
      if (mine != other) {
        char text[160];
        std::snprintf(text, sizeof text, "collision: lanes %d and %d store 0x%x and 0x%x to one place, 0x%llx", at->second, lane, other,
                      mine, static_cast<unsigned long long>(at->first));
        report_finding(w, i, lane, text);
        return;
      }
    }
  }
}

}  // namespace

// An atomic at device scope: releases what the wave knows at that address, and reads what others released there.
void publish(Wave& w, u64 address) {
  WaveShadow& shadow = *w.shadow;
  LaunchShadow& launch = *shadow.launch;
  const std::lock_guard lock(launch.mutex);
  VectorClock& there = launch.published[address];
  shadow.acquired.join(there);
  there.join(shadow.known);
  there.raise(shadow.id, shadow.clock);
}

void after_invalidate(WaveShadow& shadow, bool gl1) {
  if (gl1) {
    shadow.gl1_invalidated = true;
    return;
  }
  if (!shadow.gl1_invalidated) return;
  shadow.gl1_invalidated = false;
  shadow.known.join(shadow.acquired);
  shadow.acquired.clear();
}

// Operations that were not waited for happen after the synchronisation that they were issued before.
void restamp_outstanding(WaveShadow& shadow, u32 old_clock, u32 old_epoch) {
  for (u32 k = 0; k < shadow.queue.size(); ++k) {
    const Outstanding& entry = shadow.queue.at(k);
    if (entry.counters == 0) continue;
    for (int part = 0; part < entry.parts; ++part) {
      for (u32 lanes = entry.lanes[part]; lanes; lanes &= lanes - 1) {
        const u64 address = entry.addresses[part][__builtin_ctz(lanes)];
        for (u64 dword = address / 4; dword * 4 < address + entry.bytes; ++dword) {
          if (entry.in_lds) {
            LdsDword& cell = shadow.group->lds[dword];
            if (entry.access != Access::load && cell.write_epoch == old_epoch) cell.write_epoch = old_epoch + 1;
            if (entry.access == Access::load && cell.read_epoch == old_epoch) cell.read_epoch = old_epoch + 1;
          } else if (entry.access == Access::store) {
            const u64 page = dword * 4 / kPageBytes;
            GlobalShard& shard = shard_of(*shadow.launch, page);
            const std::lock_guard lock(shard.mutex);
            Stamp& write = dwords_of(shard, page)[dword % (kPageBytes / 4)].write;
            if (write.wave == shadow.id && write.clock == old_clock) write.clock = shadow.clock;
          }
        }
      }
    }
  }
}

void check_barrier_passed(WorkgroupShadow* group) {
  LaunchShadow& launch = *group->launch;
  u32 most = 0;
  for (u32 k = 0; k < group->waves.size(); ++k)
    if (group->waves[k]) most = std::max(most, ++group->barriers[k]);
  if (launch.checks & kCheckBarriers) {
    for (u32 k = 0; k < group->waves.size(); ++k) {
      if (group->waves[k] || group->barriers[k] >= most) continue;
      for (Wave* other : group->waves) {
        if (!other) continue;
        report_finding(*other, *(other->pc - 1), -1,
                       "barrier: wave " + std::to_string(k) + " of the workgroup ended before this barrier, which the others passed");
        break;
      }
    }
  }
  if (launch.checks & kMeasureModel) {
    std::vector<WaveModel*> models;
    for (const Wave* wave : group->waves)
      if (wave) models.push_back(wave->shadow->model.get());
    model_barrier(models);
  }
  VectorClock joined;
  for (const Wave* wave : group->waves) {
    if (!wave) continue;
    joined.join(wave->shadow->known);
    joined.raise(wave->shadow->id, wave->shadow->clock);
  }
  for (Wave* wave : group->waves) {
    if (!wave) continue;
    WaveShadow& shadow = *wave->shadow;
    shadow.known = joined;
    const u32 old_clock = shadow.clock++;
    if (launch.checks & kCheckRaces) restamp_outstanding(shadow, old_clock, group->epoch);
    const std::lock_guard lock(launch.mutex);
    launch.known_by[shadow.id] = shadow.known;
  }
  ++group->epoch;
}

void check_zeroed(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  if (!(shadow.checks & kCheckUninitialised) || i.info->dst[0].kind != OperandKind::vgpr) return;
  const u32 first_byte = access.high ? 2 : 0;
  for (u32 dword = 0; dword < (access.bytes + 3) / 4; ++dword) {
    u32* taint = shadow.vector_taint[access.data_row + dword];
    const u32 last_byte = access.bytes < 4 && i.info->dst[0].bytes < 4 ? first_byte + i.info->dst[0].bytes : 4;
    for (u32 byte = first_byte; byte < last_byte; ++byte) taint[byte] &= ~access.lanes;
    update_tainted(shadow, access.data_row + dword);
  }
}

void check_global(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  LaunchShadow& launch = *shadow.launch;
  if (shadow.model && i.info->dst[0].kind != OperandKind::sgpr) model_global(*shadow.model, launch.model, shadow.group->model, access, false);
  if (launch.checks & kCheckUninitialised) {
    if (access.access == Access::load || access.returns) check_zeroed(w, i, access);
    if (access.access != Access::load) check_address_taint(w, i, i.info->src[1], access.lanes);
  }
  if ((launch.checks & kCheckCollisions) && access.access == Access::store) check_collisions(w, i, access);
  if (!(launch.checks & kCheckRaces)) return;
  const bool synchronises = access.access == Access::atomic || is_device_load(i, access.access);
  if (access.access == Access::store) note_access(shadow, access, false);
  std::string text;
  int text_lane = -1;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const u64 address = access.addresses[lane];
    for (u64 dword = address / 4; dword * 4 < address + access.bytes;) {
      const u64 page = dword * 4 / kPageBytes;
      GlobalShard& shard = shard_of(launch, page);
      const std::lock_guard lock(shard.mutex);
      if (shadow.cached_page != page) {
        shadow.cached_dwords = dwords_of(shard, page);
        shadow.cached_page = page;
      }
      for (; dword * 4 < address + access.bytes && dword * 4 / kPageBytes == page; ++dword) {
        GlobalDword& cell = shadow.cached_dwords[dword % (kPageBytes / 4)];
        const u32 flag_writer = cell.write.wave, flag_clock = cell.write.clock;
        std::string found = touch(shadow, cell, dword * 4, access.access, bytes_of(address, access.bytes, dword), synchronises);
        if (!found.empty() && text.empty()) text = std::move(found), text_lane = lane;
        if (is_device_load(i, access.access) && flag_writer != 0 && flag_writer != shadow.id) {
          const std::lock_guard known_lock(launch.mutex);
          shadow.acquired.join(launch.known_by[flag_writer]);
          shadow.acquired.raise(flag_writer, flag_clock);
        }
      }
    }
    if (access.access == Access::atomic) publish(w, address);
  }
  if (access.access == Access::atomic) {
    const u32 old_clock = shadow.clock++;
    restamp_outstanding(shadow, old_clock, 0);
  }
  if (!text.empty()) report_finding(w, i, text_lane, text);
}

void check_lds(Wave& w, const Inst& i, const LaneAccess& access) {
  WaveShadow& shadow = *w.shadow;
  WorkgroupShadow& group = *shadow.group;
  const u32 checks = shadow.launch->checks;
  const bool taint = checks & kCheckUninitialised;
  const bool races = checks & kCheckRaces;
  if (shadow.model) model_lds(*shadow.model, shadow.launch->model, access);
  if (races) note_access(shadow, access, true);
  if ((checks & kCheckCollisions) && access.access == Access::store) check_collisions(w, i, access);
  const bool is_load = access.access == Access::load;
  const u32 me = w.index;
  const u32 first_byte = access.high ? 2 : 0;
  const u32 dwords = std::max((access.bytes + 3) / 4, 1u);
  if (taint && (is_load || access.returns)) {
    // Bytes that the load leaves alone keep their taint; those it writes start clean.
    for (u32 k = 0; k < dwords; ++k) {
      u32* row = shadow.vector_taint[access.data_row + k];
      const u32 bytes = access.bytes < 4 && i.info->dst[0].bytes < 4 ? i.info->dst[0].bytes : 4 - first_byte;
      for (u32 byte = first_byte; byte < first_byte + bytes; ++byte) row[byte] &= ~access.lanes;
    }
  }
  const char* race = nullptr;
  int race_lane = -1;
  u32 race_wave = 0;
  u64 race_address = 0;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const u64 address = access.addresses[lane];
    u32 done = 0;
    for (u64 dword = address / 4; dword * 4 < address + access.bytes; ++dword) {
      LdsDword& cell = group.lds[dword];
      const u32 byte_mask = bytes_of(address, access.bytes, dword);
      if (races) {
        const bool both_atomic = cell.atomic && access.access == Access::atomic;
        if (cell.write_epoch >= group.epoch && cell.writer != me && (cell.write_bytes & byte_mask) && !both_atomic) {
          race = is_load ? "reads" : "writes", race_lane = lane, race_wave = cell.writer, race_address = dword * 4;
        }
        if (!is_load && !both_atomic && cell.read_epoch >= group.epoch && (cell.readers & ~(1u << me)) && (cell.read_bytes & byte_mask)) {
          race = "writes", race_lane = lane, race_wave = __builtin_ctz(cell.readers & ~(1u << me)), race_address = dword * 4;
        }
        if (is_load) {
          if (cell.read_epoch < group.epoch) cell.read_epoch = group.epoch, cell.readers = 0, cell.read_bytes = 0;
          cell.readers |= 1u << me;
          cell.read_bytes |= byte_mask;
        } else {
          if (cell.write_epoch < group.epoch || cell.writer != me) cell.write_epoch = group.epoch, cell.write_bytes = 0;
          cell.writer = static_cast<u8>(me);
          cell.write_bytes |= byte_mask;
          cell.atomic = access.access == Access::atomic;
        }
      }
      if (taint) {
        for (u32 byte = 0; byte < 4; ++byte) {
          if (!(byte_mask >> byte & 1)) continue;
          u32* row = shadow.vector_taint[access.data_row + done / 4];
          const u32 at = (done % 4 + first_byte) % 4;
          if (is_load && (cell.undefined >> byte & 1)) row[at] |= 1u << lane;
          if (access.access == Access::store) {
            const u8 undefined = row[at] >> lane & 1;
            cell.undefined = static_cast<u8>((cell.undefined & ~(1u << byte)) | undefined << byte);
          }
          ++done;
        }
      }
    }
  }
  if (taint && (is_load || access.returns))
    for (u32 k = 0; k < dwords; ++k) update_tainted(shadow, access.data_row + k);
  if (race) {
    char text[160];
    std::snprintf(text, sizeof text, "race: %s LDS byte 0x%llx that wave %u of the workgroup touched with no barrier in between", race,
                  static_cast<unsigned long long>(race_address), race_wave);
    report_finding(w, i, race_lane, text);
  }
}

}  // namespace rdna
