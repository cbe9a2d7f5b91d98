// Spins. After its turn a wave's registers are noted at a branch backwards, and compared whenever it comes there again
// within a window: equal registers, with no memory changed in between, mean that the loop goes on for ever unless someone
// else changes memory. Such a wave is stuck. When every wave of every worker is, nobody will: that is an error.
#include <chrono>
#include <thread>

#include "isa/disassemble.hpp"
#include "run/workgroup.hpp"

namespace rdna {
namespace {

constexpr u32 kLargestWindow = 1 << 14;

void note(SpinProbe& probe, const Wave& w, const Inst& edge) {
  const std::size_t vector_words = std::size_t{w.group->launch->kernel->vgprs} * kLanes;
  probe.registers.resize(256 + vector_words);
  std::memcpy(probe.registers.data(), w.s, sizeof w.s);
  std::memcpy(probe.registers.data() + 256, w.v, vector_words * 4);
  probe.edge = &edge;
  probe.changes = w.group->worker->changes;
  probe.left = probe.window;
  probe.state = SpinProbe::State::watching;
}

bool same(const SpinProbe& probe, const Wave& w, const Inst& edge) {
  return &edge == probe.edge && probe.changes == w.group->worker->changes &&
         std::memcmp(probe.registers.data(), w.s, sizeof w.s) == 0 &&
         std::memcmp(probe.registers.data() + 256, w.v, (probe.registers.size() - 256) * 4) == 0;
}

}  // namespace

void end_turn(Wave& w, const Inst& edge) {
  SpinProbe& probe = w.group->probes[w.index];
  Worker& worker = *w.group->worker;
  if (probe.state == SpinProbe::State::watching) {
    if (same(probe, w, edge)) {
      probe.state = SpinProbe::State::stuck;
    } else if (--probe.left == 0) {
      probe.state = SpinProbe::State::idle;
      probe.window = std::min(2 * probe.window, kLargestWindow);
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
  note(probe, w, edge);
  worker.watching = true;
  w.turn = 1;
}

bool is_stuck(const Workgroup& group, const Wave& w) { return group.probes[w.index].state == SpinProbe::State::stuck; }

void resume_probe(Workgroup& group, Wave& w) {
  SpinProbe& probe = group.probes[w.index];
  if (probe.state == SpinProbe::State::idle) return;
  group.worker->watching = true;
  if (probe.state != SpinProbe::State::stuck) return;
  probe.state = SpinProbe::State::watching;
  probe.changes = group.worker->changes;
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
      if (op && (op->has(kLoad) || op->has(kAtomic))) polled = disassemble(*i);
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
