// What surrounds every function of the interface: its count, planned failures, the lock, the thread's last error.
#pragma once
#include <atomic>
#include <functional>
#include <new>

#include "hip/runtime.hpp"

namespace rdna::hip {

class Call {
 public:
  explicit Call(const char* name);
  const char* name() const { return name_; }
  u64 count() const { return count_.load(std::memory_order_relaxed); }
  // hipSuccess, or the failure that was planned for this call.
  hipError_t begin();
  Call* next() const { return next_; }
  static Call* first();

 private:
  const char* name_;
  std::atomic<u64> count_{0};
  Call* next_;
};

void plan_failure(PlannedFailure);
void forget_failures();

hipError_t remember(hipError_t);  // as the thread's last error

// The runtime, locked; made from the environment at first use. `error` says why there is none.
class Locked {
 public:
  Locked();
  hipError_t error() const { return error_; }
  Runtime& runtime() const { return *runtime_; }

 private:
  std::unique_lock<std::mutex> lock_;
  Runtime* runtime_ = nullptr;
  hipError_t error_ = hipSuccess;
};

enum class Needs { runtime, device };

void set_current_device(int);

template <class F>
hipError_t perform(Call& call, Needs needs, F&& body) {
  try {
    if (const hipError_t planned = call.begin()) return remember(planned);
    const Locked locked;
    if (locked.error()) return remember(locked.error());
    if (needs == Needs::device && locked.runtime().devices.empty())
      return remember(failed(hipErrorNoDevice, "there is no device"));
    if (current_device() >= static_cast<int>(locked.runtime().devices.size())) set_current_device(0);  // after a reset
    return remember(body(locked.runtime()));
  } catch (const std::bad_alloc&) {
    return remember(failed(hipErrorOutOfMemory, "the host has no memory left"));
  } catch (const std::exception& error) {
    return remember(failed(hipErrorUnknown, error.what()));
  }
}

void set_launching(bool);

}  // namespace rdna::hip

// A function of the interface: RDNA_HIP(hipFree, (void* address), Needs::device, { ... }) with `runtime` in its body.
#define RDNA_HIP(name, parameters, needs, ...)                                                      \
  extern "C" [[gnu::visibility("default")]] hipError_t name parameters {                            \
    static rdna::hip::Call& call = *new rdna::hip::Call(#name);                                     \
    const auto body = [&]([[maybe_unused]] rdna::hip::Runtime& runtime) -> hipError_t __VA_ARGS__;  \
    return rdna::hip::perform(call, needs, body);                                                   \
  }
