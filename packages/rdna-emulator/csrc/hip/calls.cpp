#include "hip/calls.hpp"

namespace rdna::hip {
namespace {

std::atomic<Call*> first_call{nullptr};
std::atomic<bool> failures_planned{false};
std::mutex failures_mutex;
std::vector<PlannedFailure> failures;

std::mutex runtime_mutex;
Runtime* the_runtime = nullptr;  // never freed: its threads and memory go with the process

thread_local int device_of_thread = 0;
thread_local hipError_t last_error = hipSuccess;

Runtime* make_runtime() {
  auto runtime = std::make_unique<Runtime>();
  runtime->settings = read_settings();
  for (const std::string& architecture : runtime->settings.devices) {
    auto device = std::make_unique<DeviceState>();
    device->architecture = architecture;
    device->target = architecture.substr(0, architecture.find(':'));
    device->null_stream = std::make_shared<Stream>();
    device->null_stream->device = static_cast<int>(runtime->devices.size());
    device->null_stream->null = true;
    runtime->devices.push_back(std::move(device));
  }
  for (const PlannedFailure& failure : runtime->settings.failures) plan_failure(failure);
  return runtime.release();
}

// Planned failures of the environment must stand before the first call of all.
std::once_flag environment_read;

}  // namespace

Call::Call(const char* name) : name_(name), next_(first_call.load()) {
  while (!first_call.compare_exchange_weak(next_, this)) {
  }
}

Call* Call::first() { return first_call.load(); }

hipError_t Call::begin() {
  std::call_once(environment_read, [] { const Locked locked; });
  count_.fetch_add(1, std::memory_order_relaxed);
  if (!failures_planned.load(std::memory_order_relaxed)) return hipSuccess;
  const std::lock_guard lock(failures_mutex);
  for (auto failure = failures.begin(); failure != failures.end(); ++failure) {
    if (failure->function != name_) continue;
    const auto error = static_cast<hipError_t>(failure->error);
    if (failure->call > 1) {
      --failure->call;
      continue;
    }
    if (failure->call == 1) failures.erase(failure);
    failures_planned = !failures.empty();
    return failed(error, std::string(name_) + " was told to fail");
  }
  return hipSuccess;
}

void plan_failure(PlannedFailure failure) {
  const std::lock_guard lock(failures_mutex);
  failures.push_back(std::move(failure));
  failures_planned = true;
}

void forget_failures() {
  const std::lock_guard lock(failures_mutex);
  failures.clear();
  failures_planned = false;
}

hipError_t remember(hipError_t error) {
  if (error != hipSuccess && error != hipErrorNotReady) last_error = error;
  return error;
}

Locked::Locked() : lock_(runtime_mutex) {
  if (!the_runtime) {
    try {
      the_runtime = make_runtime();
    } catch (const std::invalid_argument& error) {
      error_ = failed(hipErrorNotInitialized, error.what());
      return;
    }
  }
  runtime_ = the_runtime;
}

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

void set_launching(bool on) {
  const Locked locked;
  if (!locked.error()) locked.runtime().settings.launching = on;
}

}  // namespace rdna::hip

using namespace rdna::hip;

#define RDNA_PUBLIC extern "C" [[gnu::visibility("default")]]

RDNA_PUBLIC hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }

RDNA_PUBLIC hipError_t hipPeekAtLastError() { return last_error; }

RDNA_PUBLIC int rdna_hip_fail(const char* function, unsigned call, hipError_t error) {
  if (!function) return 0;
  plan_failure({function, call, static_cast<int>(error)});
  return 1;
}

RDNA_PUBLIC int rdna_hip_fail_next(const char* function, hipError_t error) { return rdna_hip_fail(function, 1, error); }

RDNA_PUBLIC void rdna_hip_launching(int on) { set_launching(on != 0); }

RDNA_PUBLIC const char* rdna_hip_message() { return message().c_str(); }

RDNA_PUBLIC unsigned long long rdna_hip_calls(const char* function) {
  unsigned long long count = 0;
  for (const Call* call = Call::first(); call; call = call->next()) {
    if (!function || call->name() == std::string_view(function)) count += call->count();
  }
  return count;
}

// What the last runtime held stays where it is: handles and addresses of it may still be in use.
RDNA_PUBLIC void rdna_hip_reset() {
  forget_failures();
  {
    const std::lock_guard lock(runtime_mutex);
    the_runtime = nullptr;
  }
  set_current_device(0);
  last_error = hipSuccess;
  message().clear();
  const Locked locked;
}
