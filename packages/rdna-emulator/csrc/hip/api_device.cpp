// Devices: how many, which, and what they are.
#include <cstdio>

#include "hip/calls.hpp"

using namespace rdna::hip;

namespace {

constexpr int kWave = 32;
constexpr int kLds = 65536;  // of a workgroup

struct Figures {
  const char* target;
  const char* name;
  int major, minor;
  int processors;  // what HIP counts on RDNA: pairs of compute units
  int clock, memory_clock;  // kHz
  int bus;         // bits
  int l2;          // bytes
  int integrated;
};

// The vendor's published figures.
constexpr Figures kFigures[] = {
    {"gfx1151", "AMD Radeon 8060S (emulated)", 11, 5, 20, 2900000, 1000000, 256, 2 << 20, 1},
    {"gfx1100", "AMD Radeon RX 7900 XTX (emulated)", 11, 0, 48, 2500000, 1249000, 384, 6 << 20, 0},
};

Figures figures_of(const DeviceState& device) {
  for (const Figures& figures : kFigures) {
    if (device.target == figures.target) return figures;
  }
  // gfx1150 is 11.5: the last two digits are minor and stepping.
  const std::string digits = device.target.size() > 5 ? device.target.substr(3) : "000";
  Figures figures = kFigures[0];
  figures.target = device.target.c_str();
  figures.name = "AMD Radeon (emulated)";
  figures.major = std::atoi(digits.substr(0, digits.size() - 2).c_str());
  figures.minor = digits[digits.size() - 2] - '0';
  return figures;
}

const DeviceState* find(const Runtime& runtime, int device) {
  return device >= 0 && device < static_cast<int>(runtime.devices.size()) ? runtime.devices[device].get() : nullptr;
}

hipError_t no_device(const Runtime& runtime, int device) {
  return failed(hipErrorInvalidDevice, "there is no device " + std::to_string(device) + "; there are " +
                                           std::to_string(runtime.devices.size()));
}

// What both layouts have.
template <class Properties>
hipError_t fill(const Runtime& runtime, Properties* properties, int number) {
  if (!properties) return hipErrorInvalidValue;
  const DeviceState* device = find(runtime, number);
  if (!device) return no_device(runtime, number);
  const Figures figures = figures_of(*device);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s", figures.name);
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s", device->architecture.c_str());
  properties->totalGlobalMem = runtime.settings.memory_bytes;
  properties->sharedMemPerBlock = properties->maxSharedMemoryPerMultiProcessor = kLds;
  properties->regsPerBlock = 196608;
  properties->warpSize = kWave;
  properties->maxThreadsPerBlock = 1024;
  for (int& size : properties->maxThreadsDim) size = 1024;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->clockRate = figures.clock;
  properties->clockInstructionRate = 100000;
  properties->memoryClockRate = figures.memory_clock;
  properties->memoryBusWidth = figures.bus;
  properties->totalConstMem = 2147483647;
  properties->major = figures.major;
  properties->minor = figures.minor;
  properties->multiProcessorCount = figures.processors;
  properties->l2CacheSize = figures.l2;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->arch = (1u << 17) - 1;
  properties->concurrentKernels = 1;
  properties->pciBusID = number + 1;
  properties->canMapHostMemory = 1;
  properties->integrated = figures.integrated;
  properties->memPitch = 2147483647;
  properties->textureAlignment = properties->texturePitchAlignment = 256;
  return hipSuccess;
}

bool attribute_of(const Figures& figures, hipDeviceAttribute_t attribute, int number, int* value) {
  switch (attribute) {
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeUnifiedAddressing:
      *value = 1; return true;
    case hipDeviceAttributeClockRate: *value = figures.clock; return true;
    case hipDeviceAttributeCooperativeLaunch: case hipDeviceAttributePciDeviceId: case hipDeviceAttributePciDomainID:
      *value = 0; return true;
    case hipDeviceAttributeIntegrated: *value = figures.integrated; return true;
    case hipDeviceAttributeL2CacheSize: *value = figures.l2; return true;
    case hipDeviceAttributeComputeCapabilityMajor: *value = figures.major; return true;
    case hipDeviceAttributeComputeCapabilityMinor: *value = figures.minor; return true;
    case hipDeviceAttributeMaxBlockDimX: case hipDeviceAttributeMaxBlockDimY: case hipDeviceAttributeMaxBlockDimZ:
    case hipDeviceAttributeMaxThreadsPerBlock:
      *value = 1024; return true;
    case hipDeviceAttributeMaxGridDimX: *value = 2147483647; return true;
    case hipDeviceAttributeMaxGridDimY: case hipDeviceAttributeMaxGridDimZ: *value = 65535; return true;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: *value = 2048; return true;
    case hipDeviceAttributeMultiprocessorCount: *value = figures.processors; return true;
    case hipDeviceAttributePhysicalMultiProcessorCount: *value = figures.processors; return true;
    case hipDeviceAttributePciBusId: *value = number + 1; return true;
    case hipDeviceAttributeMaxRegistersPerBlock: *value = 196608; return true;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: case hipDeviceAttributeSharedMemPerBlockOptin:
    case hipDeviceAttributeSharedMemPerMultiprocessor: case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      *value = kLds; return true;
    case hipDeviceAttributeWarpSize: *value = kWave; return true;
  }
  return false;
}

}  // namespace

RDNA_HIP(hipInit, (unsigned flags), Needs::device, { return flags ? hipErrorInvalidValue : hipSuccess; })

RDNA_HIP(hipDriverGetVersion, (int* version), Needs::runtime, {
  if (!version) return hipErrorInvalidValue;
  *version = runtime.settings.version;
  return hipSuccess;
})

RDNA_HIP(hipRuntimeGetVersion, (int* version), Needs::runtime, {
  if (!version) return hipErrorInvalidValue;
  *version = runtime.settings.version;
  return hipSuccess;
})

RDNA_HIP(hipGetDeviceCount, (int* count), Needs::runtime, {
  if (!count) return hipErrorInvalidValue;
  *count = static_cast<int>(runtime.devices.size());
  return *count ? hipSuccess : failed(hipErrorNoDevice, "there is no device");
})

RDNA_HIP(hipSetDevice, (int device), Needs::device, {
  if (!find(runtime, device)) return no_device(runtime, device);
  set_current_device(device);
  return hipSuccess;
})

RDNA_HIP(hipGetDevice, (int* device), Needs::device, {
  if (!device) return hipErrorInvalidValue;
  *device = current_device();
  return hipSuccess;
})

RDNA_HIP(hipDeviceGet, (hipDevice_t* device, int ordinal), Needs::device, {
  if (!device) return hipErrorInvalidValue;
  if (!find(runtime, ordinal)) return no_device(runtime, ordinal);
  *device = ordinal;
  return hipSuccess;
})

RDNA_HIP(hipDeviceGetAttribute, (int* value, hipDeviceAttribute_t attribute, int device), Needs::device, {
  if (!value) return hipErrorInvalidValue;
  const DeviceState* found = find(runtime, device);
  if (!found) return no_device(runtime, device);
  if (attribute_of(figures_of(*found), attribute, device, value)) return hipSuccess;
  return failed(hipErrorInvalidValue, "device attribute " + std::to_string(attribute) + " is not served");
})

RDNA_HIP(hipDeviceGetName, (char* name, int capacity, hipDevice_t device), Needs::device, {
  const DeviceState* found = find(runtime, device);
  if (!found) return no_device(runtime, device);
  if (!name || capacity <= 0) return hipErrorInvalidValue;
  std::snprintf(name, static_cast<std::size_t>(capacity), "%s", figures_of(*found).name);
  return hipSuccess;
})

RDNA_HIP(hipDeviceTotalMem, (size_t* bytes, hipDevice_t device), Needs::device, {
  if (!bytes) return hipErrorInvalidValue;
  if (!find(runtime, device)) return no_device(runtime, device);
  *bytes = runtime.settings.memory_bytes;
  return hipSuccess;
})

RDNA_HIP(hipGetDeviceProperties, (hipDeviceProp_tR0000* properties, int device), Needs::device, {
  return fill(runtime, properties, device);
})

RDNA_HIP(hipGetDevicePropertiesR0600, (hipDeviceProp_tR0600* properties, int device), Needs::device, {
  const hipError_t error = fill(runtime, properties, device);
  if (error) return error;
  properties->unifiedAddressing = 1;
  properties->sharedMemPerMultiprocessor = properties->sharedMemPerBlockOptin = kLds;
  properties->regsPerMultiprocessor = properties->regsPerBlock;
  properties->maxBlocksPerMultiProcessor = 2;
  return hipSuccess;
})

RDNA_HIP(hipDeviceSynchronize, (), Needs::device, {
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  return finish_device(runtime, current_device());
})
