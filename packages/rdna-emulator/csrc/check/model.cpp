#include "check/model.hpp"

#include <algorithm>


namespace rdna {
namespace {

template <class Function>
void for_each_bit(const u64* words, int count, Function function) {
  for (int word = 0; word < count; ++word)
    for (u64 bits = words[word]; bits; bits &= bits - 1) function(64 * word + __builtin_ctzll(bits));
}

}  // namespace

void WaveModel::wait_until(u64 when, Stall why) {
  if (when <= time) return;
  stalls[static_cast<int>(why)] += when - time;
  time = when;
}

void WaveModel::wait_for(u8 counter, u32 limit, Stall why) {
  u32 outstanding = 0;
  for (const Flight& flight : flights) outstanding += (flight.counters & counter) != 0;
  for (Flight& flight : flights) {
    if (outstanding <= limit) break;
    if (!(flight.counters & counter)) continue;
    wait_until(flight.done, why);
    flight.counters &= static_cast<u8>(~counter);
    --outstanding;
  }
  std::erase_if(flights, [](const Flight& flight) { return flight.counters == 0; });
}

void WaveModel::issue_instruction(const InstPlan& plan, const ModelParameters& p) {
  if (plan.wait.vm != 0xff) wait_for(1, plan.wait.vm, Stall::vmcnt);
  if (plan.wait.lgkm != 0xff) wait_for(2, plan.wait.lgkm, Stall::lgkmcnt);
  if (plan.wait.vs != 0xff) wait_for(4, plan.wait.vs, Stall::vscnt);
  u64 ready = time;
  for_each_bit(plan.reads_v, 4, [&](int reg) { ready = std::max(ready, ready_v[reg]); });
  for_each_bit(plan.reads_s, 2, [&](int reg) { ready = std::max(ready, ready_s[reg]); });
  wait_until(ready, Stall::dependence);
  const u32 cycles = plan.matrix ? p.issue_matrix : plan.slow ? p.issue_trans : 1;
  time += cycles;
  issue += cycles;
  if (plan.counters) {  // its results are guarded by a wait
    flights.push_back({plan.counters, time});
    return;
  }
  const u32 latency = plan.matrix ? p.dependence_matrix : plan.slow ? p.dependence_trans : plan.vector ? p.dependence_valu : 1;
  for_each_bit(plan.writes_v, 4, [&](int reg) { ready_v[reg] = time + latency - 1; });
  for_each_bit(plan.writes_s, 2, [&](int reg) { ready_s[reg] = time + latency - 1; });
}

void model_global(WaveModel& wave, LaunchModel& launch, WorkgroupModel& group, const LaneAccess& access, bool scalar) {
  const ModelParameters& p = launch.parameters;
  u32 latency = scalar ? p.latency_scalar : p.latency_l0;
  u64 previous = ~0ull;
  for (u32 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const u64 address = access.addresses[__builtin_ctz(lanes)];
    for (u64 line = address / 128; line * 128 < address + access.bytes; ++line) {
      if (line == previous) continue;
      previous = line;
      u64& tag = group.l0[line % group.l0.size()];
      if (tag == line) continue;
      tag = line;
      const std::lock_guard lock(launch.mutex);
      latency = std::max(latency, launch.lines.insert(line).second ? p.latency_dram : p.latency_l2);
    }
  }
  if (!wave.flights.empty()) wave.flights.back().done = wave.time + latency;
}

// 128 bytes a cycle when nothing conflicts.
void model_lds(WaveModel& wave, const LaunchModel& launch, const LaneAccess& access) {
  const u32 cycles = (static_cast<u32>(__builtin_popcount(access.lanes)) * access.bytes + 127) / 128;
  if (!wave.flights.empty()) wave.flights.back().done = wave.time + launch.parameters.latency_lds + cycles;
}

void model_barrier(std::vector<WaveModel*>& waves) {
  u64 last = 0;
  for (const WaveModel* wave : waves) last = std::max(last, wave->time);
  for (WaveModel* wave : waves) wave->wait_until(last, Stall::barrier);
}

void model_wave_end(const WaveModel& wave, u32 index, LaunchModel& launch, WorkgroupModel& group) {
  group.simd_issue[index % group.simd_issue.size()] += wave.issue;
  group.critical = std::max(group.critical, wave.time);
  const std::lock_guard lock(launch.mutex);
  launch.result.issue += wave.issue;
  for (int kind = 0; kind < kStalls; ++kind) launch.result.stalls[kind] += wave.stalls[kind];
}

}  // namespace rdna
