#include "hip/core.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace rdna::hip {
namespace {

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&core), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

#if defined(__x86_64__)
// As _library.py asks, for the same two builds.
bool has(const std::string& flags, std::initializer_list<const char*> wanted) {
  for (const char* flag : wanted) {
    if (flags.find(" " + std::string(flag) + " ") == std::string::npos) return false;
  }
  return true;
}

const char* best_variant() {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  while (std::getline(file, flags) && !flags.starts_with("flags")) {
  }
  flags += ' ';
  if (!has(flags, {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})) {
    throw std::runtime_error("the emulator needs a CPU with x86-64-v3 (Intel Haswell, AMD Zen, or newer)");
  }
  return has(flags, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? "v4" : "v3";
}
#else
const char* best_variant() { return "native"; }
#endif

std::string core_path() {
  const char* value = std::getenv("RDNA_EMULATOR_CORE");
  const std::string forced = value ? value : "";
  if (forced.find('/') != std::string::npos) return forced;
  return own_folder() + "/librdna_emulator_" + (forced.empty() ? best_variant() : forced) + ".so";
}

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) throw std::runtime_error(std::string("the emulator's core has no ") + name);
}

Core open_core() {
  const std::string path = core_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(std::string("cannot open the emulator's core: ") + dlerror());
  Core result;
  find(library, "rdna_device_create", result.device_create);
  find(library, "rdna_module_create", result.module_create);
  find(library, "rdna_module_destroy", result.module_destroy);
  find(library, "rdna_run", result.run);
  return result;
}

}  // namespace

const Core& core() {
  static const Core opened = open_core();
  return opened;
}

}  // namespace rdna::hip
