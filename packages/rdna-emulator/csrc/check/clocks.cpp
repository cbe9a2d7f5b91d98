// What waves know of each other: vector clocks, joined at barriers and through device-scope atomics.
#include <algorithm>

#include "check/cells.hpp"
#include "check/shadow.hpp"

namespace rdna {

namespace {

struct PagePool {
  static constexpr std::size_t kMost = 16384;  // about 120 MB
  std::mutex mutex;
  std::vector<std::unique_ptr<GlobalPage>> pages;
};

PagePool& page_pool() {
  static PagePool pool;
  return pool;
}

}  // namespace

std::unique_ptr<GlobalPage> take_page() {
  PagePool& pool = page_pool();
  std::unique_ptr<GlobalPage> page;
  {
    const std::lock_guard lock(pool.mutex);
    if (pool.pages.empty()) return std::make_unique<GlobalPage>();
    page = std::move(pool.pages.back());
    pool.pages.pop_back();
  }
  page->reads.clear();
  page->in_cells = false;
  std::fill(std::begin(page->used), std::end(page->used), 0);
  std::fill(std::begin(page->split), std::end(page->split), 0);
  return page;
}

void give_back(std::unique_ptr<GlobalPage> page) {
  PagePool& pool = page_pool();
  const std::lock_guard lock(pool.mutex);
  if (pool.pages.size() < PagePool::kMost) pool.pages.push_back(std::move(page));
}

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
    if (shadow.queue.at(k).counters == 0) continue;
    const Touched& touched = shadow.queue.touched(k);
    for (int part = 0; part < touched.parts; ++part) {
      for (u32 lanes = touched.lanes[part]; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        if (touched.in_lds) {
          for_lds_cells(*shadow.group, touched.lds[part][lane], touched.bytes, [&](LdsCell& cell, u32, u64) {
            if (touched.access != Access::load && cell.write_epoch == old_epoch) cell.write_epoch = old_epoch + 1;
            if (touched.access == Access::load && cell.read_epoch <= old_epoch + 1) {
              if (cell.read_epoch <= old_epoch) cell.readers = 0;
              cell.readers |= 1u << shadow.index;
              cell.read_epoch = old_epoch + 1;
              cell.read_bytes = 0xf;
            }
          });
        } else if (touched.access == Access::store) {
          GlobalPages pages(shadow);
          for_global_cells(pages, touched.global[lane], touched.bytes, true, [&](GlobalCell& cell, u32, u64) {
            if (cell.write.wave == shadow.id && cell.write.clock == old_clock) cell.write.clock = shadow.clock;
          });
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
  ++group->lds_version;
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

}  // namespace rdna
