// Memory: pages of this process, told apart by whose they are.
#include <sys/mman.h>

#include "hip/calls.hpp"

using namespace rdna::hip;

namespace {

constexpr u64 kPage = 4096;

u64 pages(u64 bytes) { return (bytes + kPage - 1) / kPage * kPage; }

hipError_t allocate(Runtime& runtime, void** address, u64 bytes, Allocation::Kind kind, unsigned flags) {
  if (!address) return hipErrorInvalidValue;
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  *address = nullptr;
  if (!bytes) return hipSuccess;
  DeviceState& device = *runtime.devices[current_device()];
  const bool on_device = kind == Allocation::Kind::device;
  const u64 free = runtime.settings.memory_bytes - device.used;
  if (bytes > (u64{1} << 47) || (on_device && pages(bytes) > free)) {
    return failed(hipErrorOutOfMemory, std::to_string(bytes) + " bytes are asked for, " + std::to_string(free) +
                                           " are free on device " + std::to_string(current_device()));
  }
  void* memory =
      mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return failed(hipErrorOutOfMemory, "the host has no memory left");
  Allocation allocation;
  allocation.kind = kind;
  allocation.bytes = bytes;
  allocation.device = current_device();
  allocation.flags = flags;
  allocation.name = std::string(on_device ? "device" : "host") + " memory of " + std::to_string(bytes) + " bytes";
  runtime.allocations[reinterpret_cast<u64>(memory)] = std::move(allocation);
  runtime.forget_spans();
  if (on_device) device.used += pages(bytes);
  *address = memory;
  return hipSuccess;
}

hipError_t release(Runtime& runtime, void* address, Allocation::Kind kind) {
  if (!address) return hipSuccess;
  const auto found = runtime.allocations.find(reinterpret_cast<u64>(address));
  if (found == runtime.allocations.end() || found->second.kind != kind) {
    return failed(hipErrorInvalidValue, "no allocation of this kind begins there");
  }
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  hipError_t error = hipSuccess;
  for (std::size_t k = 0; k < runtime.devices.size(); ++k) {
    if (const hipError_t failure = finish_device(runtime, static_cast<int>(k)); failure && !error) error = failure;
  }
  const u64 bytes = pages(found->second.bytes);
  if (kind == Allocation::Kind::device) runtime.devices[found->second.device]->used -= bytes;
  runtime.allocations.erase(found);
  runtime.forget_spans();
  munmap(address, bytes);
  return error;
}

// Whether an address is registered memory; an error where it is, and the bytes do not fit.
hipError_t check_range(const Runtime& runtime, const void* address, u64 bytes, const char* what,
                       const Allocation** found) {
  u64 begin = 0;
  *found = runtime.allocation(address, &begin);
  if (!*found || bytes <= begin + (*found)->bytes - reinterpret_cast<u64>(address)) return hipSuccess;
  return failed(hipErrorInvalidValue, std::string(what) + " of " + std::to_string(bytes) +
                                          " bytes reaches past the end of " + (*found)->name);
}

hipError_t check_copy(const Runtime& runtime, const void* to, const void* from, u64 bytes, hipMemcpyKind kind,
                      bool* pageable) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  if (!to || !from) return failed(hipErrorInvalidValue, "a null pointer");
  const Allocation *target = nullptr, *source = nullptr;
  if (const hipError_t error = check_range(runtime, to, bytes, "a copy", &target)) return error;
  if (const hipError_t error = check_range(runtime, from, bytes, "a copy", &source)) return error;
  if (!target && (kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice)) {
    return failed(hipErrorInvalidValue, "the target of the copy is no device memory");
  }
  if (!source && (kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice)) {
    return failed(hipErrorInvalidValue, "the source of the copy is no device memory");
  }
  *pageable = !target || !source;
  return hipSuccess;
}

hipError_t copy(Runtime& runtime, void* to, const void* from, u64 bytes, hipMemcpyKind kind, hipStream_t handle,
                bool wait) {
  if (wait) {
    if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  }
  const auto stream = runtime.stream(handle);
  if (!stream) return failed(hipErrorInvalidHandle, "there is no such stream");
  if (!bytes) return hipSuccess;
  bool pageable = false;
  if (const hipError_t error = check_copy(runtime, to, from, bytes, kind, &pageable)) return error;
  Work work;
  work.kind = Work::Kind::copy;
  work.to = static_cast<u8*>(to);
  work.from = static_cast<const u8*>(from);
  work.bytes = bytes;
  if (const hipError_t error = enqueue(runtime, stream, std::move(work))) return error;
  // Memory that the runtime does not know may be gone once the call has returned.
  return wait || (pageable && !stream->capture) ? finish(runtime, *stream) : hipSuccess;
}

hipError_t fill(Runtime& runtime, void* to, int value, u64 bytes, hipStream_t handle, bool wait) {
  if (wait) {
    if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  }
  const auto stream = runtime.stream(handle);
  if (!stream) return failed(hipErrorInvalidHandle, "there is no such stream");
  if (!bytes) return hipSuccess;
  const Allocation* found = nullptr;
  if (const hipError_t error = check_range(runtime, to, bytes, "a fill", &found)) return error;
  if (!found) return failed(hipErrorInvalidValue, "the target of the fill is no device memory");
  Work work;
  work.kind = Work::Kind::fill;
  work.to = static_cast<u8*>(to);
  work.value = value;
  work.bytes = bytes;
  if (const hipError_t error = enqueue(runtime, stream, std::move(work))) return error;
  return wait ? finish(runtime, *stream) : hipSuccess;
}

}  // namespace

RDNA_HIP(hipMalloc, (void** address, size_t bytes), Needs::device, {
  return allocate(runtime, address, bytes, Allocation::Kind::device, 0);
})

RDNA_HIP(hipFree, (void* address), Needs::device, { return release(runtime, address, Allocation::Kind::device); })

RDNA_HIP(hipHostMalloc, (void** address, size_t bytes, unsigned flags), Needs::device, {
  return allocate(runtime, address, bytes, Allocation::Kind::host, flags);
})

RDNA_HIP(hipHostFree, (void* address), Needs::device, { return release(runtime, address, Allocation::Kind::host); })

RDNA_HIP(hipMemcpy, (void* to, const void* from, size_t bytes, hipMemcpyKind kind), Needs::device, {
  return copy(runtime, to, from, bytes, kind, nullptr, true);
})

RDNA_HIP(hipMemcpyAsync, (void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream),
         Needs::device, { return copy(runtime, to, from, bytes, kind, stream, false); })

RDNA_HIP(hipMemcpyHtoD, (hipDeviceptr_t to, const void* from, size_t bytes), Needs::device, {
  return copy(runtime, to, from, bytes, hipMemcpyHostToDevice, nullptr, true);
})

RDNA_HIP(hipMemcpyDtoH, (void* to, hipDeviceptr_t from, size_t bytes), Needs::device, {
  return copy(runtime, to, from, bytes, hipMemcpyDeviceToHost, nullptr, true);
})

RDNA_HIP(hipMemcpyDtoD, (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes), Needs::device, {
  return copy(runtime, to, from, bytes, hipMemcpyDeviceToDevice, nullptr, true);
})

RDNA_HIP(hipMemcpyHtoDAsync, (hipDeviceptr_t to, const void* from, size_t bytes, hipStream_t stream), Needs::device, {
  return copy(runtime, to, from, bytes, hipMemcpyHostToDevice, stream, false);
})

RDNA_HIP(hipMemcpyDtoHAsync, (void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream), Needs::device, {
  return copy(runtime, to, from, bytes, hipMemcpyDeviceToHost, stream, false);
})

RDNA_HIP(hipMemcpyDtoDAsync, (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream), Needs::device,
         { return copy(runtime, to, from, bytes, hipMemcpyDeviceToDevice, stream, false); })

RDNA_HIP(hipMemset, (void* to, int value, size_t bytes), Needs::device, {
  return fill(runtime, to, value, bytes, nullptr, true);
})

RDNA_HIP(hipMemsetAsync, (void* to, int value, size_t bytes, hipStream_t stream), Needs::device, {
  return fill(runtime, to, value, bytes, stream, false);
})

RDNA_HIP(hipMemGetInfo, (size_t* free_bytes, size_t* total_bytes), Needs::device, {
  if (!free_bytes || !total_bytes) return hipErrorInvalidValue;
  *total_bytes = runtime.settings.memory_bytes;
  *free_bytes = runtime.settings.memory_bytes - runtime.devices[current_device()]->used;
  return hipSuccess;
})

RDNA_HIP(hipPointerGetAttributes, (hipPointerAttribute_t* attributes, const void* address), Needs::device, {
  if (!attributes || !address) return hipErrorInvalidValue;
  *attributes = {};
  u64 begin = 0;
  const Allocation* found = runtime.allocation(address, &begin);
  if (!found) {
    // ROCm 5 refuses what it does not know; from 6 on it says so.
    attributes->device = -2;
    return runtime.settings.version < 60000000 ? failed(hipErrorInvalidValue, "the address is of no allocation")
                                               : hipSuccess;
  }
  const bool host = found->kind == Allocation::Kind::host;
  attributes->type = host ? hipMemoryTypeHost : hipMemoryTypeDevice;
  attributes->device = found->device;
  attributes->devicePointer = const_cast<void*>(address);
  attributes->hostPointer = host ? const_cast<void*>(address) : nullptr;
  attributes->allocationFlags = found->flags;
  return hipSuccess;
})
