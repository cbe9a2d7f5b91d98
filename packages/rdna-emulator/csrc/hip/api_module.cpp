// Modules, their functions, and launches.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "hip/calls.hpp"
#include "hip/core.hpp"

using namespace rdna::hip;

namespace rdna::hip {

Module::~Module() {
  if (handle) core().module_destroy(handle);
}

}  // namespace rdna::hip

namespace {

constexpr u64 kMostThreads = 1024;     // of a workgroup
constexpr u64 kMostLds = 65536;
constexpr u64 kMostYz = 65535;

void create(Module& module, const std::string& target) {
  CodeObject& code = module.code;
  std::vector<u32> addresses;
  std::vector<const char*> names;
  for (const auto& [name, address] : code.functions) addresses.push_back(address), names.push_back(name.c_str());
  char error[512] = {};
  module.handle =
      core().module_create(target.c_str(), code.image + code.text, code.text_bytes, addresses.data(), names.data(),
                           names.size(), code.spans.data(), code.spans.size(), error, sizeof error);
  if (!module.handle) throw OtherTargetError(error);
}

template <class Choose>
hipError_t load(Runtime& runtime, hipModule_t* handle, Choose&& choose) {
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  const std::string& target = runtime.devices[current_device()]->target;
  try {
    auto module = std::make_shared<Module>();
    module->device = current_device();
    module->code = read_code_object(choose(target), target);
    create(*module, target);
    for (const auto& [name, variable] : module->code.variables) {
      Allocation allocation;
      allocation.kind = Allocation::Kind::image;
      allocation.bytes = variable.size;
      allocation.device = module->device;
      allocation.name = name;
      runtime.allocations[reinterpret_cast<u64>(module->code.image) + variable.address] = allocation;
    }
    runtime.modules[module.get()] = module;
    *handle = reinterpret_cast<hipModule_t>(module.get());
    return hipSuccess;
  } catch (const OtherTargetError& error) {
    return failed(hipErrorNoBinaryForGpu, error.what());
  } catch (const DamagedError& error) {
    return failed(hipErrorInvalidImage, error.what());
  } catch (const std::runtime_error& error) {
    return failed(hipErrorSharedObjectInitFailed, error.what());
  }
}

hipError_t load_data(Runtime& runtime, hipModule_t* module, const void* image) {
  if (!module || !image) return hipErrorInvalidValue;
  return load(runtime, module,
              [&](const std::string& target) { return choose_entry(static_cast<const u8*>(image), target); });
}

const Module* find(const Runtime& runtime, hipModule_t handle) {
  const auto found = runtime.modules.find(handle);
  return found == runtime.modules.end() ? nullptr : found->second.get();
}

// From what `extra` lists.
hipError_t read_extra(void** extra, const void** buffer, u64* bytes) {
  const std::size_t* size = nullptr;
  for (int k = 0; k < 8 && extra[k] != HIP_LAUNCH_PARAM_END; k += 2) {
    if (extra[k] == HIP_LAUNCH_PARAM_BUFFER_POINTER) *buffer = extra[k + 1];
    else if (extra[k] == HIP_LAUNCH_PARAM_BUFFER_SIZE) size = static_cast<const std::size_t*>(extra[k + 1]);
    else
      return failed(hipErrorInvalidValue,
                    "extra lists a key that is neither the buffer's address, nor its size, nor the end");
  }
  if (!*buffer || !size) return failed(hipErrorInvalidValue, "extra needs the buffer's address and its size");
  *bytes = *size;
  return hipSuccess;
}

hipError_t pack(const KernelObject& kernel, void** parameters, void** extra, Work& work) {
  work.arguments.assign(kernel.argument_bytes, 0);
  if (parameters && extra)
    return failed(hipErrorInvalidValue, "arguments are given twice: as kernelParams and as extra");
  if (extra) {
    const void* buffer = nullptr;
    u64 bytes = 0;
    if (const hipError_t error = read_extra(extra, &buffer, &bytes)) return error;
    if (bytes < kernel.explicit_bytes) {
      return failed(hipErrorInvalidValue, "kernel " + kernel.name + " has " + std::to_string(kernel.explicit_bytes) +
                                              " bytes of arguments, extra gives " + std::to_string(bytes));
    }
    std::memcpy(work.arguments.data(), buffer, kernel.explicit_bytes);
  } else if (kernel.explicit_bytes && !parameters) {
    return failed(hipErrorInvalidValue, "kernel " + kernel.name + " takes arguments, none are given");
  } else {
    u32 number = 0;
    for (const Argument& argument : kernel.arguments) {
      if (argument.hidden()) continue;
      const void* value = parameters[number++];
      if (!value)
        return failed(hipErrorInvalidValue,
                      "argument " + std::to_string(number - 1) + " of kernel " + kernel.name + " is a null pointer");
      std::memcpy(work.arguments.data() + argument.offset, value, argument.size);
    }
  }
  fill_hidden(kernel, work);
  return hipSuccess;
}

hipError_t check_sizes(const KernelObject& kernel, const Work& work) {
  for (int k = 0; k < 3; ++k) {
    if (!work.grid[k] || !work.block[k]) return failed(hipErrorInvalidValue, "a size of grid or block is 0");
    if (u64{work.grid[k]} * work.block[k] >> 32)
      return failed(hipErrorInvalidConfiguration, "the grid has 2^32 threads or more in a dimension");
  }
  const u64 threads = u64{work.block[0]} * work.block[1] * work.block[2];
  if (threads > kMostThreads)
    return failed(hipErrorInvalidConfiguration,
                  "a block of " + std::to_string(threads) + " threads; there may be 1024");
  if (work.grid[1] > kMostYz || work.grid[2] > kMostYz ||
      u64{work.grid[0]} * work.grid[1] >= (u64{1} << 31) / work.grid[2]) {
    return failed(hipErrorInvalidConfiguration, "the grid has more than 65535 workgroups in y or z, or 2^31 in all");
  }
  if (kernel.record.lds_bytes + u64{work.dynamic_lds} > kMostLds) {
    return failed(hipErrorInvalidValue, "kernel " + kernel.name + " would have more than 65536 bytes of LDS");
  }
  if (threads > kernel.max_block) {
    return failed(hipErrorLaunchFailure, "kernel " + kernel.name + " was compiled for blocks of at most " +
                                             std::to_string(kernel.max_block) + " threads, this has " +
                                             std::to_string(threads));
  }
  if (!kernel.refusal.empty())
    return failed(hipErrorLaunchFailure, "kernel " + kernel.name + " cannot be emulated: " + kernel.refusal);
  return hipSuccess;
}

}  // namespace

RDNA_HIP(hipModuleLoad, (hipModule_t* module, const char* path), Needs::device, {
  if (!module || !path) return hipErrorInvalidValue;
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed(hipErrorFileNotFound, std::string("cannot read ") + path);
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  const Bytes bytes(reinterpret_cast<const u8*>(data.data()), data.size());
  return load(runtime, module, [&](const std::string& target) { return choose_entry(bytes, target); });
})

RDNA_HIP(hipModuleLoadData, (hipModule_t* module, const void* image), Needs::device, {
  return load_data(runtime, module, image);
})

RDNA_HIP(hipModuleLoadDataEx, (hipModule_t* module, const void* image, unsigned, hipJitOption*, void**), Needs::device,
         { return load_data(runtime, module, image); })

RDNA_HIP(hipModuleUnload, (hipModule_t handle), Needs::device, {
  const auto found = runtime.modules.find(handle);
  if (found == runtime.modules.end()) return failed(hipErrorInvalidHandle, "there is no such module");
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  Module& module = *found->second;
  const hipError_t error = finish_device(runtime, module.device);
  for (const auto& [name, function] : module.functions) runtime.functions.erase(&function);
  for (const auto& [name, variable] : module.code.variables) {
    runtime.allocations.erase(reinterpret_cast<u64>(module.code.image) + variable.address);
  }
  runtime.modules.erase(found);
  return error;
})

RDNA_HIP(hipModuleGetFunction, (hipFunction_t* function, hipModule_t handle, const char* name), Needs::device, {
  if (!function || !name) return hipErrorInvalidValue;
  const auto module = runtime.modules.find(handle);
  if (module == runtime.modules.end()) return failed(hipErrorInvalidHandle, "there is no such module");
  const auto kernel = module->second->code.kernels.find(name);
  if (kernel == module->second->code.kernels.end())
    return failed(hipErrorNotFound, std::string("the module has no kernel ") + name);
  Function& made = module->second->functions[name];
  made = {module->second.get(), &kernel->second};
  runtime.functions[&made] = std::shared_ptr<Function>(module->second, &made);
  *function = reinterpret_cast<hipFunction_t>(&made);
  return hipSuccess;
})

RDNA_HIP(hipModuleGetGlobal, (hipDeviceptr_t* address, size_t* bytes, hipModule_t handle, const char* name),
         Needs::device, {
           if (!name || (!address && !bytes)) return hipErrorInvalidValue;
           const Module* module = find(runtime, handle);
           if (!module) return failed(hipErrorInvalidHandle, "there is no such module");
           const auto variable = module->code.variables.find(name);
           if (variable == module->code.variables.end())
             return failed(hipErrorNotFound, std::string("the module has no variable ") + name);
           if (address) *address = module->code.image + variable->second.address;
           if (bytes) *bytes = variable->second.size;
           return hipSuccess;
         })

RDNA_HIP(hipFuncGetAttribute, (int* value, hipFunction_attribute attribute, hipFunction_t handle), Needs::device, {
  if (!value) return hipErrorInvalidValue;
  const auto function = runtime.functions.find(handle);
  if (function == runtime.functions.end()) return failed(hipErrorInvalidDeviceFunction, "there is no such function");
  const KernelObject& kernel = *function->second->kernel;
  switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(kernel.max_block); return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(kernel.record.lds_bytes); return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = 0; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(kernel.record.private_bytes); return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(kernel.registers); return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kMostLds - kernel.record.lds_bytes);
      return hipSuccess;
    default: return failed(hipErrorInvalidValue, "function attribute " + std::to_string(attribute) + " is not served");
  }
})

RDNA_HIP(hipModuleLaunchKernel,
         (hipFunction_t handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
          unsigned block_z, unsigned dynamic_lds, hipStream_t stream_handle, void** parameters, void** extra),
         Needs::device, {
  const auto function = runtime.functions.find(handle);
  if (function == runtime.functions.end()) return failed(hipErrorInvalidHandle, "there is no such function");
  const auto stream = runtime.stream(stream_handle);
  if (!stream) return failed(hipErrorInvalidHandle, "there is no such stream");
  if (stream->device != function->second->module->device) {
    return failed(hipErrorInvalidDevice, "the function was loaded on device " +
                                             std::to_string(function->second->module->device) +
                                             ", the stream is of device " + std::to_string(stream->device));
  }
  const KernelObject& kernel = *function->second->kernel;
  Work work;
  work.function = function->second;
  work.grid[0] = grid_x, work.grid[1] = grid_y, work.grid[2] = grid_z;
  work.block[0] = block_x, work.block[1] = block_y, work.block[2] = block_z;
  work.dynamic_lds = dynamic_lds;
  if (const hipError_t error = check_sizes(kernel, work)) return error;
  if (const hipError_t error = pack(kernel, parameters, extra, work)) return error;
  return enqueue(runtime, stream, std::move(work));
})
