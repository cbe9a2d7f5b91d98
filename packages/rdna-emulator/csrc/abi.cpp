#include "abi.h"

#include <cstdio>
#include <cstring>

#include "isa/decode.hpp"
#include "run/device.hpp"

using namespace rdna;

struct rdna_device {
  explicit rdna_device(u32 threads) : device(threads) {}
  Device device;
  LaunchOutcome outcome;  // of the last launch: its strings are lent to the caller
  std::vector<const char*> findings;
};

struct rdna_module {
  Module module;
};

namespace {

static_assert(kClasses == RDNA_CLASSES);
static_assert(kStalls == RDNA_STALLS);
static_assert(sizeof(ModelParameters) == 4 * RDNA_MODEL_PARAMETERS);
static_assert(sizeof(WorkgroupCycles) == sizeof(rdna_workgroup_cycles));

NamedSpan to_span(const rdna_span& span) {
  return {span.address, span.address + span.size, span.origin, span.writable != 0, span.counted != 0, span.name};
}

Kernel to_kernel(const rdna_kernel& k) {
  return {k.name,         k.entry, k.user_sgprs, k.user_sgpr_count, k.workgroup_ids,
          k.workitem_ids, k.mode,  k.vgprs,      k.lds_bytes,       k.private_bytes};
}

LaunchRequest to_request(const rdna_launch& launch) {
  LaunchRequest request;
  request.kernel = to_kernel(*launch.kernel);
  request.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  request.block = {launch.block[0], launch.block[1], launch.block[2]};
  request.dynamic_lds = launch.dynamic_lds;
  request.checks = launch.checks;
  request.collect = launch.collect;
  request.random = launch.random;
  request.seed = launch.seed;
  std::memcpy(&request.model, launch.model, sizeof request.model);
  request.kernarg = launch.kernarg;
  request.kernarg_bytes = launch.kernarg_bytes;
  for (u64 k = 0; k < launch.span_count; ++k) request.spans.push_back(to_span(launch.spans[k]));
  return request;
}

// Spans of the outcome stand in address order: the caller's are found by what they cover.
void give_counts(rdna_launch& launch, const LaunchOutcome& outcome) {
  for (u64 k = 0; k < launch.span_count; ++k) {
    rdna_span& span = launch.spans[k];
    span.lines = 0;
    u64 requested = 0;
    for (const NamedSpan& named : outcome.spans) {
      if (named.begin != span.address || named.end != span.address + span.size) continue;
      span.lines = named.lines;
      requested = named.requested;
    }
    if (launch.span_bytes) launch.span_bytes[k] = requested;
  }
}

}  // namespace

extern "C" {

#define RDNA_PUBLIC [[gnu::visibility("default")]]

RDNA_PUBLIC rdna_device* rdna_device_create(uint32_t threads) {
  try {
    return new rdna_device(threads);
  } catch (const std::exception&) {
    return nullptr;
  }
}

RDNA_PUBLIC void rdna_device_destroy(rdna_device* device) { delete device; }

RDNA_PUBLIC rdna_module* rdna_module_create(const char* target, const uint8_t* text, uint64_t text_bytes,
                                            const uint32_t* symbol_addresses, const char* const* symbol_names,
                                            uint64_t symbol_count, const rdna_span* image, uint64_t image_count, char* error,
                                            uint64_t error_capacity) {
  try {
    std::vector<Symbol> symbols;
    for (u64 k = 0; k < symbol_count; ++k) symbols.push_back({symbol_addresses[k], 0, symbol_names[k]});
    auto module = std::make_unique<rdna_module>();
    module->module.program = decode_program(target, {text, text_bytes}, std::move(symbols), reinterpret_cast<u64>(text));
    for (u64 k = 0; k < image_count; ++k) module->module.spans.push_back(to_span(image[k]));
    return module.release();
  } catch (const std::exception& failure) {
    std::snprintf(error, error_capacity, "%s", failure.what());
    return nullptr;
  }
}

RDNA_PUBLIC void rdna_module_destroy(rdna_module* module) { delete module; }

RDNA_PUBLIC int32_t rdna_run(rdna_device* device, rdna_module* module, rdna_launch* launch) {
  LaunchOutcome& outcome = device->outcome;
  outcome = {};
  launch->failed = 0;
  try {
    outcome = device->device.launch(module->module, to_request(*launch));
    if (outcome.failed) launch->failed = 1 + static_cast<int32_t>(outcome.fault);
  } catch (const std::exception& failure) {  // out of memory
    outcome.message = failure.what();
    launch->failed = -1;
  }
  device->findings.clear();
  for (const std::string& finding : outcome.findings) device->findings.push_back(finding.c_str());
  launch->findings = device->findings.data();
  launch->finding_count = static_cast<uint32_t>(device->findings.size());
  launch->message = outcome.message.c_str();
  launch->wave_instructions = outcome.wave_instructions;
  std::memcpy(launch->by_class, outcome.by_class, sizeof launch->by_class);
  launch->bytes_requested = outcome.requested;
  std::memcpy(launch->segments, outcome.traffic.segments, sizeof launch->segments);
  launch->unique_lines = outcome.unique_lines;
  launch->lds_cycles = outcome.traffic.lds_cycles;
  launch->lds_minimum = outcome.traffic.lds_minimum;
  launch->model_workgroups = reinterpret_cast<const rdna_workgroup_cycles*>(outcome.model.workgroups.data());
  launch->model_workgroup_count = outcome.model.workgroups.size();
  launch->model_issue = outcome.model.issue;
  std::memcpy(launch->model_stalls, outcome.model.stalls, sizeof launch->model_stalls);
  give_counts(*launch, outcome);
  return launch->failed;
}

RDNA_PUBLIC const char* rdna_class_name(uint32_t number) {
  return number < kClasses ? name_of(static_cast<OpClass>(number)) : nullptr;
}
}
