#include "run/device.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "memory/global.hpp"

namespace rdna {
namespace {

// The dispatch packet of HSA, for kernels that read it (-O0 code asks it for the workgroup's size).
struct alignas(64) DispatchPacket {
  u16 header = 0, setup = 3;
  u16 workgroup_size[3] = {};
  u16 reserved0 = 0;
  u32 grid_size[3] = {};  // work-items
  u32 private_segment_size = 0, group_segment_size = 0;
  u64 kernel_object = 0, kernarg_address = 0, reserved2 = 0, completion_signal = 0;
};
static_assert(sizeof(DispatchPacket) == 64);

struct LaunchMemory {
  DispatchPacket packet;
  u8 queue[256] = {};
};

NamedSpan span_of(const void* memory, u64 bytes, const char* name) {
  const u64 begin = reinterpret_cast<u64>(memory);
  return {begin, begin + bytes, begin, false, false, name};
}

void fill_packet(DispatchPacket& packet, const Launch& launch) {
  const u32 block[3] = {launch.block.x, launch.block.y, launch.block.z};
  const u32 grid[3] = {launch.grid.x, launch.grid.y, launch.grid.z};
  for (int k = 0; k < 3; ++k) {
    packet.workgroup_size[k] = static_cast<u16>(block[k]);
    packet.grid_size[k] = block[k] * grid[k];
  }
  packet.private_segment_size = launch.kernel->private_bytes;
  packet.group_segment_size = launch.lds_bytes;
  packet.kernarg_address = launch.kernarg;
}

}  // namespace

Device::Device(u32 threads) {
  for (u32 k = 0; k < std::max(1u, threads); ++k) {
    seats_.push_back(std::make_unique<Seat>());
    seats_.back()->worker.number = k;
  }
  for (u32 k = 1; k < seats_.size(); ++k) threads_.emplace_back([this, k] { serve(*seats_[k]); });
}

Device::~Device() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Device::serve(Seat& seat) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return closing_ || wanted_ > 0; });
    if (closing_) return;
    --wanted_, ++working_;
    const Job& job = *job_;
    lock.unlock();
    job(seat);
    lock.lock();
    if (--working_ == 0) done_.notify_one();
  }
}

void Device::run(const Job& job, u32 helpers) {
  if (helpers) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      wanted_ = helpers;
    }
    helpers == 1 ? wake_.notify_one() : wake_.notify_all();
  }
  job(*seats_.front());
  if (helpers) {
    std::unique_lock lock(mutex_);
    wanted_ = 0;  // who has not begun by now has nothing left to do
    done_.wait(lock, [&] { return working_ == 0; });
  }
}

void Device::collect(Module& module, LaunchOutcome& outcome, Launch& launch) {
  std::vector<u64> executed(module.program.insts.size()), requested(launch.space.pieces().size());
  std::vector<TouchedWord> touched;
  for (const auto& seat : seats_) {
    Worker& worker = seat->worker;
    ProgramState* state = worker.state;
    if (!state) continue;
    worker.state = nullptr;
    state->add_traffic();
    state->forget_launch();
    for (std::size_t k = 0; k < requested.size(); ++k) requested[k] += state->requested[k];
    for (int k = 0; k < 3; ++k) outcome.traffic.segments[k] += state->traffic.segments[k];
    outcome.traffic.lds_cycles += state->traffic.lds_cycles;
    outcome.traffic.lds_minimum += state->traffic.lds_minimum;
    state->traffic = {};
    for (std::size_t k = 0; k < executed.size(); ++k) executed[k] += std::exchange(state->executed[k], 0);
    mark_pending(worker);
    touched.insert(touched.end(), worker.touched.begin(), worker.touched.end());
    worker.touched.clear();
  }
  for (std::size_t k = 0; k < executed.size(); ++k) {
    const OpInfo* op = module.program.insts[k].info->op;
    if (!executed[k]) continue;
    outcome.wave_instructions += executed[k];
    outcome.by_class[static_cast<u32>(op ? op->cls : OpClass::other)] += executed[k];
  }
  outcome.requested = std::accumulate(requested.begin(), requested.end(), u64{0});
  launch.space.count_requested(requested);
  outcome.unique_lines = launch.space.count_lines(touched);
  outcome.spans = launch.space.named();
}

LaunchOutcome Device::launch(Module& module, const LaunchRequest& request) {
  const std::lock_guard lock(launching_);
  LaunchOutcome outcome;
  const std::size_t entry_word = request.kernel.entry / 4;
  if (entry_word >= module.program.index_of_word.size() || module.program.index_of_word[entry_word] < 0) {
    outcome.failed = true;
    outcome.fault = Fault::unknown_instruction;
    outcome.message = "kernel " + request.kernel.name + " begins in the middle of an instruction";
    return outcome;
  }
  Launch launch;
  LaunchMemory memory;
  launch.program = &module.program;
  launch.kernel = &request.kernel;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.lds_bytes = request.kernel.lds_bytes + request.dynamic_lds;
  launch.kernarg = reinterpret_cast<u64>(request.kernarg);
  launch.dispatch_packet = reinterpret_cast<u64>(&memory.packet);
  launch.queue = reinterpret_cast<u64>(memory.queue);
  fill_packet(memory.packet, launch);
  std::vector<NamedSpan> spans = request.spans;
  spans.insert(spans.end(), module.spans.begin(), module.spans.end());
  spans.push_back(span_of(request.kernarg, request.kernarg_bytes, "the kernel's arguments"));
  spans.push_back(span_of(&memory.packet, sizeof memory.packet, "the dispatch packet"));
  spans.push_back(span_of(memory.queue, sizeof memory.queue, "the queue"));
  launch.space.reset(std::move(spans), line_bits_);
  if (request.checks) launch.shadow = make_launch_shadow(request.checks, request.collect, module.program, request.model);

  module.states.resize(seats_.size());
  const u64 workgroups = launch.grid.count();
  const Job job = [&](Seat& seat) {
    if (!seat.worker.state) {  // a thread that ends early may come again, in the place of one that has not begun
      auto& state = module.states[seat.worker.number];
      if (!state) state = std::make_unique<ProgramState>(module.program.insts.size());
      state->requested.assign(launch.space.pieces().size(), 0);
      seat.worker.state = state.get();
      seat.worker.clock = 0;
    }
    request.random ? run_at_random(launch, seat.worker, seat.slots, request.seed)
                   : run_in_order(launch, seat.worker, seat.slots);
  };
  run(job, request.random ? 0 : static_cast<u32>(std::min<u64>(workgroups, seats_.size()) - 1));

  collect(module, outcome, launch);
  if (launch.shadow) {
    outcome.findings = take_findings(launch.shadow);
    outcome.model = model_result(launch.shadow);
    free_launch_shadow(launch.shadow);
  }
  if (launch.failure) {
    outcome.failed = true;
    try {
      std::rethrow_exception(launch.failure);
    } catch (const TrapError& error) {
      outcome.fault = error.fault;
      outcome.message = error.message;
    }
  }
  return outcome;
}

}  // namespace rdna
