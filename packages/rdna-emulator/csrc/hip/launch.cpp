#include <cstring>

#include "hip/core.hpp"
#include "hip/runtime.hpp"

namespace rdna::hip {
namespace {

// Faults of core/machine.hpp, one more than their number.
enum : int { kUnknownInstruction = 1, kUnsupported, kMemory, kMisaligned, kCheck, kSpin, kDivergence };

hipError_t error_of(int failure) {
  switch (failure) {
    case kMemory: case kMisaligned: return hipErrorIllegalAddress;
    case kSpin: return hipErrorLaunchTimeOut;
    case -1: return hipErrorOutOfMemory;
    default: return hipErrorLaunchFailure;
  }
}

const std::vector<rdna_span>& spans_of(const Runtime& runtime, int number) {
  DeviceState& device = *runtime.devices[number];
  if (!device.spans_valid) {
    device.spans.clear();
    for (const auto& [address, allocation] : runtime.allocations) {
      if (allocation.kind == Allocation::Kind::image) continue;  // the module brings its own
      if (allocation.kind == Allocation::Kind::device && allocation.device != number) continue;
      device.spans.push_back({address, allocation.bytes, address, allocation.name.c_str(), 1, 1, 0});
    }
    device.spans_valid = true;
  }
  return device.spans;
}

template <class T>
void put(Work& work, u32 offset, T value) {
  if (offset + sizeof(T) <= work.arguments.size()) std::memcpy(work.arguments.data() + offset, &value, sizeof(T));
}

}  // namespace

// The others stay zero: grids are whole workgroups that begin at 0, and there is no host service to call.
void fill_hidden(const KernelObject& kernel, Work& work) {
  const auto axis = [](const std::string& kind) { return kind.back() - 'x'; };
  for (const Argument& argument : kernel.arguments) {
    const std::string& kind = argument.kind;
    if (!argument.hidden()) continue;
    if (kind.starts_with("hidden_block_count_")) put<u32>(work, argument.offset, work.grid[axis(kind)]);
    else if (kind.starts_with("hidden_group_size_"))
      put<u16>(work, argument.offset, static_cast<u16>(work.block[axis(kind)]));
    else if (kind == "hidden_grid_dims") {
      const u16 dimensions = work.grid[2] * work.block[2] > 1 ? 3 : work.grid[1] * work.block[1] > 1 ? 2 : 1;
      put<u16>(work, argument.offset, dimensions);
    }
    else if (kind == "hidden_dynamic_lds_size") put<u32>(work, argument.offset, work.dynamic_lds);
    else if (kind == "hidden_private_base") put<u32>(work, argument.offset, 0x20000);
    else if (kind == "hidden_shared_base") put<u32>(work, argument.offset, 0x10000);
  }
}

hipError_t launch(Runtime& runtime, const Work& work) {
  if (!runtime.settings.launching) return hipSuccess;
  Module& module = *work.function->module;
  const KernelObject& kernel = *work.function->kernel;
  DeviceState& device = *runtime.devices[module.device];
  if (!device.handle) device.handle = core().device_create(runtime.settings.threads);
  if (!device.handle)
    return failed(hipErrorOutOfMemory, "cannot start " + std::to_string(runtime.settings.threads) + " threads");
  std::vector<rdna_span> spans = spans_of(runtime, module.device);
  rdna_launch launch = {};
  launch.kernel = &kernel.record;
  std::memcpy(launch.grid, work.grid, sizeof launch.grid);
  std::memcpy(launch.block, work.block, sizeof launch.block);
  launch.dynamic_lds = work.dynamic_lds;
  launch.checks = runtime.settings.checks;
  alignas(64) static thread_local u8 empty[64];
  launch.kernarg = work.arguments.empty() ? empty : work.arguments.data();
  launch.kernarg_bytes = work.arguments.size();
  launch.spans = spans.data();
  launch.span_count = spans.size();
  if (const int failure = core().run(device.handle, module.handle, &launch)) {
    return failed(error_of(failure), launch.message);
  }
  return hipSuccess;
}

}  // namespace rdna::hip
