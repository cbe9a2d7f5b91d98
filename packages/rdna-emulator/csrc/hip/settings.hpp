// What the environment says about the emulated machine.
#pragma once
#include <string>
#include <vector>

#include "hip/bytes.hpp"

namespace rdna::hip {

struct PlannedFailure {
  std::string function;
  u64 call = 0;  // the call-th from now on; 0: every call
  int error = 0;
};

struct Settings {
  std::vector<std::string> devices;  // gcnArchName of each: "gfx1151", "gfx942:sramecc+:xnack-"
  u64 memory_bytes = 0;              // of each device
  int version = 0;                   // 60241134 is 6.2.41134
  u32 checks = 0;                    // mask, in the order of the names in settings.cpp
  u32 threads = 0;
  bool launching = true;
  bool deferred = false;             // work waits in its stream until something asks for it
  std::vector<PlannedFailure> failures;
};

Settings read_settings();  // throws std::invalid_argument, which says what is wrong

}  // namespace rdna::hip
