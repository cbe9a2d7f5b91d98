// The emulator's core: a library of its own, opened when the first code object is loaded.
#pragma once
#include "abi.h"

namespace rdna::hip {

struct Core {
  decltype(&rdna_device_create) device_create;
  decltype(&rdna_module_create) module_create;
  decltype(&rdna_module_destroy) module_destroy;
  decltype(&rdna_run) run;
};

// The one that RDNA_EMULATOR_CORE names, or the best for this CPU beside this library; stays open. Throws
// std::runtime_error.
const Core& core();

}  // namespace rdna::hip
