// Spins. After its turn a wave's registers and scratch are noted at a branch backwards, and compared whenever it comes there
// again within a window: if they are equal, and no other memory has changed in between, the loop goes on for ever unless
// someone else changes memory. Such a wave is stuck. When every wave of every worker is, nobody will: that is an error.
#include <array>
#include <chrono>
#include <thread>

#include "isa/disassemble.hpp"
#include "run/workgroup.hpp"

namespace rdna {
namespace {

constexpr u32 kLargestWindow = 1 << 14;

constexpr u32 kCostOfNote = 16;  // in branches of the window

struct Part {
  const void* data;
  std::size_t bytes;
};

// What a wave has for itself: scalars, the kernel's vector registers, scratch.
std::array<Part, 3> parts_of(const Wave& w) {
  const Workgroup& group = *w.group;
  const std::size_t scratch = std::size_t{kLanes} * group.scratch_stride;
  return {{{w.s, sizeof w.s},
           {w.v, std::size_t{group.launch->kernel->vgprs} * sizeof w.v[0]},
           {group.scratch + w.index * scratch, scratch}}};
}

void note(SpinProbe& probe, const Wave& w, const Inst& edge) {
  std::size_t size = 0;
  for (const Part& part : parts_of(w)) size += part.bytes;
  probe.state_of_wave.resize(size);
  u8* to = probe.state_of_wave.data();
  for (const Part& part : parts_of(w)) {
    if (part.bytes) std::memcpy(to, part.data, part.bytes);
    to += part.bytes;
  }
  probe.edge = &edge;
  probe.changes = w.group->worker->changes;
  probe.until_next = probe.stride;
}

bool same(const SpinProbe& probe, const Wave& w, const Inst& edge) {
  if (&edge != probe.edge || probe.changes != w.group->worker->changes) return false;
  const u8* noted = probe.state_of_wave.data();
  for (const Part& part : parts_of(w)) {
    if (part.bytes && std::memcmp(noted, part.data, part.bytes)) return false;
    noted += part.bytes;
  }
  return true;
}

}  // namespace

void end_turn(Wave& w, const Inst& edge) {
  SpinProbe& probe = w.group->probes[w.index];
  Worker& worker = *w.group->worker;
  if (probe.state == SpinProbe::State::watching) {
    if (same(probe, w, edge)) {
      probe.state = SpinProbe::State::stuck;
    } else if (probe.changes != worker.changes && probe.left > kCostOfNote) {
      probe.stride = 1;
      note(probe, w, edge);  // what was noted belongs to other memory
      probe.left -= kCostOfNote;
    } else if (--probe.until_next == 0 && probe.left > kCostOfNote) {
      probe.stride *= 2;  // Brent's way to find a cycle whose beginning is not known
      note(probe, w, edge);
      --probe.left;
    } else if (--probe.left == 0) {
      probe.state = SpinProbe::State::idle;
      probe.window = std::min(2 * probe.window, kLargestWindow);
      probe.skip = probe.window / 64;  // so that watching a long loop costs little
    }
    if (probe.state == SpinProbe::State::watching) {
      w.turn = 1;
      return;
    }
    worker.watching = false;
    w.turn = kTurn;
    w.leave = true;
    return;
  }
  if (probe.skip) {
    --probe.skip;
    w.turn = kTurn;
    w.leave = true;
    return;
  }
  probe.stride = 1;
  note(probe, w, edge);
  probe.left = probe.window;
  probe.state = SpinProbe::State::watching;
  worker.watching = true;
  w.turn = 1;
}

bool is_stuck(const Workgroup& group, const Wave& w) { return group.probes[w.index].state == SpinProbe::State::stuck; }
bool is_watched(const Workgroup& group, const Wave& w) {
  return group.probes[w.index].state == SpinProbe::State::watching;
}

void resume_probe(Workgroup& group, Wave& w) {
  SpinProbe& probe = group.probes[w.index];
  if (probe.state == SpinProbe::State::idle) return;
  group.worker->watching = true;
  if (probe.state != SpinProbe::State::stuck) return;
  probe.state = SpinProbe::State::watching;
  probe.changes = group.worker->changes;
  probe.stride = probe.until_next = 1;
  probe.left = probe.window;
  w.turn = 1;
}

void worker_begins(Quiet& quiet) {
  const std::lock_guard lock(quiet.mutex);
  ++quiet.live, ++quiet.epoch, quiet.confirmed = 0;
}

void worker_ends(Quiet& quiet) {
  const std::lock_guard lock(quiet.mutex);
  --quiet.live, ++quiet.epoch, quiet.confirmed = 0;
}

namespace {

[[noreturn]] void report_spin(Workgroup& group) {
  for (Wave* wave : group.waves) {
    if (wave->state != WaveState::running) continue;
    const Inst& edge = *group.probes[wave->index].edge;
    const Inst* begin = wave->pc;  // a stuck wave stands at the target of its branch
    std::string polled;
    for (const Inst* i = begin; i < &edge; ++i) {
      const OpInfo* op = i->info->op;
      if (op && op->cls != OpClass::scratch && (op->has(kLoad) || op->has(kAtomic))) polled = disassemble(*i);
    }
    char loop[80];
    std::snprintf(loop, sizeof loop, "the loop from 0x%x to 0x%x", begin->info->address, edge.info->address);
    trap(*wave, edge, Fault::spin, -1,
         std::string("spin without progress: ") + loop + " repeats with the same registers" +
             (polled.empty() ? "" : ", polling with `" + polled + "`") + ", and no wave in flight changes memory");
  }
  std::abort();
}

}  // namespace

void wait_for_others(Launch& launch, SpinWait& wait, Workgroup& group) {
  Quiet& quiet = launch.quiet;
  bool alone = false;
  {
    const std::lock_guard lock(quiet.mutex);
    if (!wait.entered) {
      wait.entered = true;
      ++quiet.waiting, ++quiet.epoch, quiet.confirmed = 0;
    } else if (wait.all_waiting && wait.epoch == quiet.epoch && wait.confirmed_epoch != quiet.epoch) {
      // The round that has just ended began when all were waiting already, and nobody has moved since.
      wait.confirmed_epoch = quiet.epoch;
      ++quiet.confirmed;
    }
    wait.epoch = quiet.epoch;
    wait.all_waiting = quiet.waiting == quiet.live;
    alone = wait.all_waiting && quiet.confirmed == quiet.live;
  }
  if (alone) report_spin(group);
  if (!wait.all_waiting) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void stop_waiting(Launch& launch, SpinWait& wait) {
  if (!wait.entered) return;
  wait = {};
  const std::lock_guard lock(launch.quiet.mutex);
  --launch.quiet.waiting, ++launch.quiet.epoch, launch.quiet.confirmed = 0;
}

}  // namespace rdna
