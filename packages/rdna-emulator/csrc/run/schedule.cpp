// In which order the waves of a launch run.
#include <algorithm>

#include "run/workgroup.hpp"

namespace rdna {
namespace {

constexpr u32 kLooks = 4;           // at stuck waves in a round, while others make progress
constexpr u32 kDeviceWaves = 1280;  // 20 WGPs of 4 SIMDs of 16 waves: more are never in flight on a gfx1151

// Workgroups that spinning waves may wait for while they spin, as many as a device would hold.
u64 resident_limit(const Launch& launch) { return std::max<u64>(1, kDeviceWaves / launch.waves_per_workgroup()); }

bool admit(Launch& launch, Worker& worker, SlotSet& set) {
  if (launch.failed.load(std::memory_order_relaxed)) return false;
  const u64 number = launch.next_workgroup.fetch_add(1, std::memory_order_relaxed);
  if (number >= launch.grid.count()) return false;
  launch.resident.fetch_add(1, std::memory_order_relaxed);
  set.free_slot().begin(launch, worker, number);
  return true;
}

void fail(Launch& launch, u64 workgroup) {
  const std::lock_guard lock(launch.mutex);
  if (workgroup < launch.failed_workgroup) {
    launch.failed_workgroup = workgroup;
    launch.failure = std::current_exception();
  }
  launch.failed = true;
}

void end_if_interrupted(const Launch& launch) {
  if (launch.interrupts.interrupted()) [[unlikely]] throw TrapError{Fault::interrupted, "an interrupt (Ctrl-C) ended it"};
}

void retire_if_ended(Slot& slot) {
  if (slot.group().ended < slot.group().waves.size()) return;
  slot.group().launch->resident.fetch_sub(1, std::memory_order_relaxed);
  slot.end();
}

// Runs every wave of a workgroup that can run until it leaves the loop; of stuck waves at most `looks`, which go on only if
// what they wait for has come. Returns whether one of the waves made progress.
bool run_round(Workgroup& group, u32& looks) {
  bool progress = false;
  for (Wave* wave : group.waves) {
    if (wave->state != WaveState::running) continue;
    const bool was_stuck = is_stuck(group, *wave);
    if (was_stuck && looks == 0) continue;
    looks -= was_stuck;
    resume_probe(group, *wave);
    // A stuck wave runs on, sleeps or not, until it is known whether it still is.
    do run_wave(*wave, 0);
    while (was_stuck && wave->state == WaveState::running && is_watched(group, *wave));
    group.worker->watching = false;
    settle(group, *wave);
    progress |= !is_stuck(group, *wave);
  }
  return progress;
}

Workgroup& first_busy(SlotSet& set) {
  return (*std::find_if(set.slots.begin(), set.slots.end(), [](const auto& slot) { return slot->busy(); }))->group();
}

struct EndSlots {
  SlotSet& set;
  ~EndSlots() {
    for (const auto& slot : set.slots) slot->end();
  }
};

}  // namespace

void run_in_order(Launch& launch, Worker& worker, SlotSet& set) {
  EndSlots cleanup{set};
  SpinWait wait;
  u64 current = ~u64{0};
  std::size_t first = 0;    // slot that begins the round: the looks go around
  bool everybody = false;   // looks at all stuck waves
  worker_begins(launch.quiet);
  try {
    while (set.busy() || admit(launch, worker, set)) {
      end_if_interrupted(launch);
      bool progress = false;
      const u64 changes = worker.changes;
      u32 looks = everybody ? ~0u : kLooks;
      const std::size_t slots = set.slots.size();
      for (std::size_t k = 0; k < slots; ++k) {
        Slot& slot = *set.slots[(first + k) % slots];
        if (!slot.busy()) continue;
        current = slot.group().number;
        progress |= run_round(slot.group(), looks);
        retire_if_ended(slot);
      }
      ++first;
      if (progress || worker.changes != changes) {
        stop_waiting(launch, wait);
        everybody = false;
        continue;
      }
      if (!everybody) {
        everybody = true;
        continue;
      }
      // A failure elsewhere ends this wait; a workgroup that could still end has its chance first.
      if (launch.failed.load(std::memory_order_relaxed)) break;
      if (launch.resident < resident_limit(launch) && admit(launch, worker, set)) {
        everybody = false;
        continue;
      }
      current = first_busy(set).number;
      wait_for_others(launch, wait, first_busy(set));
    }
  } catch (...) {
    fail(launch, current);
  }
  stop_waiting(launch, wait);
  worker_ends(launch.quiet);
}

void run_at_random(Launch& launch, Worker& worker, SlotSet& set, u64 seed) {
  constexpr u64 kResident = 8;      // workgroups in flight, while there are so many
  constexpr u64 kLongestRun = 64;   // instructions before another wave's turn
  EndSlots cleanup{set};
  SpinWait wait;
  std::mt19937_64 random(seed);
  const auto below = [&](u64 bound) { return random() % bound; };
  u64 current = ~u64{0};
  u64 resident = std::min(kResident, resident_limit(launch));
  std::vector<std::pair<Slot*, Wave*>> ready;
  worker_begins(launch.quiet);
  try {
    for (;;) {
      end_if_interrupted(launch);
      while (set.busy() < resident && admit(launch, worker, set)) {
      }
      ready.clear();
      for (const auto& slot : set.slots) {
        if (!slot->busy()) continue;
        for (Wave* wave : slot->group().waves) {
          if (wave->state == WaveState::running && !is_stuck(slot->group(), *wave)) ready.emplace_back(slot.get(), wave);
        }
      }
      if (ready.empty()) {
        if (!set.busy()) break;
        // All spin: each looks once more, then others may come in, and then it is an error.
        bool progress = false;
        const u64 changes = worker.changes;
        u32 looks = ~0u;
        for (const auto& slot : set.slots) {
          if (!slot->busy()) continue;
          current = slot->group().number;
          progress |= run_round(slot->group(), looks);
          retire_if_ended(*slot);
        }
        if (progress || worker.changes != changes) {
          stop_waiting(launch, wait);
        } else if (launch.resident < resident_limit(launch) && admit(launch, worker, set)) {
          resident = std::max(resident, set.busy());
        } else {
          current = first_busy(set).number;
          wait_for_others(launch, wait, first_busy(set));
        }
        continue;
      }
      const auto [slot, wave] = ready[below(ready.size())];
      Workgroup& group = slot->group();
      current = group.number;
      worker.watching = group.probes[wave->index].state == SpinProbe::State::watching;
      run_wave(*wave, 1 + below(kLongestRun));
      worker.watching = false;
      settle(group, *wave);
      retire_if_ended(*slot);
      // What this wave has changed may be what a stuck one waits for.
      for (const auto& other : set.slots) {
        if (!other->busy()) continue;
        for (Wave* stuck : other->group().waves) {
          if (is_stuck(other->group(), *stuck) && other->group().probes[stuck->index].changes != worker.changes) {
            other->group().probes[stuck->index].state = SpinProbe::State::idle;
          }
        }
      }
    }
  } catch (...) {
    fail(launch, current);
  }
  stop_waiting(launch, wait);
  worker_ends(launch.quiet);
}

}  // namespace rdna
