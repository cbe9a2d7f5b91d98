#include "run/workgroup.hpp"

#include <cstdlib>
#include <new>

namespace rdna {
namespace {

// Registers and LDS that nobody has written hold NaNs and addresses that fault, not friendly zeros.
constexpr int kPoison = 0xff;

void* allocate(u64 bytes) {
  void* memory = std::aligned_alloc(128, (bytes + 127) / 128 * 128);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

Slot::~Slot() {
  for (Wave* wave : waves_) {
    wave->~Wave();
    std::free(wave);
  }
  std::free(lds_);
  std::free(scratch_);
}

void Slot::reserve(u32 waves, u64 lds_bytes, u64 scratch_bytes) {
  while (waves_.size() < waves) waves_.push_back(new (allocate(sizeof(Wave))) Wave);
  if (lds_bytes > lds_size_) {
    std::free(lds_);
    lds_ = nullptr;
    lds_ = static_cast<u8*>(allocate(lds_size_ = lds_bytes));
  }
  if (scratch_bytes > scratch_size_) {
    std::free(scratch_);
    scratch_ = nullptr;
    scratch_ = static_cast<u8*>(allocate(scratch_size_ = scratch_bytes));
  }
}

void Slot::begin(Launch& launch, Worker& worker, u64 number) {
  const u32 waves = launch.waves_per_workgroup();
  Workgroup& group = group_;
  group.scratch_bytes = launch.kernel->private_bytes;
  group.scratch_stride = group.scratch_bytes ? (group.scratch_bytes + 15) / 16 * 16 + 16 : 0;
  const u64 scratch = u64{waves} * kLanes * group.scratch_stride;
  reserve(waves, launch.lds_bytes + 128, scratch);
  std::memset(lds_, kPoison, launch.lds_bytes);
  if (scratch) std::memset(scratch_, kPoison, scratch);
  group.insts = launch.program->insts.data();
  group.state = worker.state;
  group.worker = &worker;
  group.launch = &launch;
  group.lds = lds_;
  group.lds_bytes = launch.lds_bytes;
  group.scratch = scratch_;
  group.number = number;
  group.id = {static_cast<u32>(number % launch.grid.x), static_cast<u32>(number / launch.grid.x % launch.grid.y),
              static_cast<u32>(number / launch.grid.x / launch.grid.y)};
  group.ended = group.arrived = 0;
  group.waves.assign(waves_.begin(), waves_.begin() + waves);
  if (group.probes.size() < waves) group.probes.resize(waves);
  for (SpinProbe& probe : group.probes) probe.state = SpinProbe::State::idle, probe.window = 64, probe.skip = 0;
  group.shadow = launch.shadow ? make_workgroup_shadow(launch.shadow, launch.lds_bytes, waves) : nullptr;
  busy_ = true;
  for (u32 k = 0; k < waves; ++k) begin_wave(*waves_[k], k);
}

void Slot::begin_wave(Wave& w, u32 index) {
  const Launch& launch = *group_.launch;
  const Kernel& kernel = *launch.kernel;
  const u64 threads = launch.block.count();
  std::memset(w.v, kPoison, std::size_t{kernel.vgprs} * sizeof w.v[0]);
  std::memset(w.s, kPoison, kVcc * 4);
  std::memset(w.s + kVcc, 0, sizeof w.s - kVcc * 4);
  w.s[235 + 1] = static_cast<u32>(kSharedBase >> 32);   // src_shared_base is 235 and 236
  w.s[237 + 1] = static_cast<u32>(kPrivateBase >> 32);  // src_private_base is 237 and 238
  w.pc = launch.program->insts.data() + launch.program->index_of_word[kernel.entry / 4];
  w.constants = reinterpret_cast<const u8*>(launch.program->constants.data());
  w.program = launch.program;
  w.group = &group_;
  w.executed = group_.state->executed.data();
  group_.state->last_matrix = nullptr;  // which may have been that of the wave that was here
  ++group_.state->waves_begun;
  w.shadow = nullptr;
  w.mode = kernel.mode;
  w.index = index;
  w.state = WaveState::running;
  w.leave = false;
  w.turn = kTurn;

  u32 next = 0;
  const auto put = [&](u64 value) {
    w.write_scalar64(static_cast<u16>(next), value);
    next += 2;
  };
  if (kernel.user_sgprs & kPrivateSegmentBuffer) put(0), put(0);
  if (kernel.user_sgprs & kDispatchPointer) put(launch.dispatch_packet);
  if (kernel.user_sgprs & kQueuePointer) put(launch.queue);
  if (kernel.user_sgprs & kKernargPointer) put(launch.kernarg);
  if (kernel.user_sgprs & kDispatchId) put(0);
  if (kernel.user_sgprs & kFlatScratchInit) put(0);
  if (kernel.user_sgprs & kPrivateSegmentSize) w.s[next++] = kernel.private_bytes;
  next = kernel.user_sgpr_count;
  if (kernel.workgroup_ids & 1) w.s[next++] = group_.id.x;
  if (kernel.workgroup_ids & 2) w.s[next++] = group_.id.y;
  if (kernel.workgroup_ids & 4) w.s[next++] = group_.id.z;
  if (kernel.workgroup_ids & 8) w.s[next++] = static_cast<u32>(group_.waves.size());

  const u64 first = u64{index} * kLanes;
  const u64 left = threads - first;
  w.s[kExec] = left >= kLanes ? ~0u : (1u << left) - 1;
  for (u64 lane = 0; lane < kLanes && first + lane < threads; ++lane) {
    const u64 item = first + lane;
    const u32 x = static_cast<u32>(item % launch.block.x), y = static_cast<u32>(item / launch.block.x % launch.block.y);
    const u32 z = static_cast<u32>(item / launch.block.x / launch.block.y);
    w.v[0][lane] = x | (kernel.workitem_ids >= 1 ? y << 10 : 0) | (kernel.workitem_ids >= 2 ? z << 20 : 0);
  }
  if (group_.shadow) rdna::begin_wave(w, group_.shadow, 1, next);
}

void Slot::end() {
  if (!busy_) return;
  busy_ = false;
  for (Wave* wave : group_.waves) {
    if (wave->shadow) end_wave(*wave);
  }
  if (group_.shadow) free_workgroup_shadow(group_.shadow);
  group_.shadow = nullptr;
}

namespace {

template <bool kChecked, bool kLimited>
void loop(Wave& w, u64 limit) {
  const Inst* const insts = w.group->insts;
  u64* const executed = w.executed;
  w.leave = false;
  do {
    const Inst& i = *w.pc;
    w.pc = &i + 1;
    ++executed[&i - insts];
    if constexpr (kChecked) check_before(w, i);
    i.fn(w, i);
  } while (!w.leave && (!kLimited || --limit));
}

}  // namespace

void run_wave(Wave& w, u64 limit) {
  if (w.shadow) {
    limit ? loop<true, true>(w, limit) : loop<true, false>(w, 0);
  } else {
    limit ? loop<false, true>(w, limit) : loop<false, false>(w, 0);
  }
}

void settle(Workgroup& group, Wave& w) {
  if (w.state == WaveState::running) return;
  if (w.state == WaveState::ended) {
    ++group.ended;
    if (w.shadow) end_wave(w);
  } else {
    ++group.arrived;
  }
  if (group.arrived == 0 || group.arrived + group.ended < group.waves.size()) return;
  group.arrived = 0;
  for (Wave* wave : group.waves) {
    if (wave->state == WaveState::barrier) wave->state = WaveState::running;
  }
  if (group.shadow) check_barrier_passed(group.shadow);
}

Slot& SlotSet::free_slot() {
  for (const auto& slot : slots) {
    if (!slot->busy()) return *slot;
  }
  slots.push_back(std::make_unique<Slot>());
  return *slots.back();
}

u64 SlotSet::busy() const {
  u64 count = 0;
  for (const auto& slot : slots) count += slot->busy();
  return count;
}

}  // namespace rdna
