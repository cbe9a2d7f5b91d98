#include "hip/settings.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace rdna::hip {
namespace {

constexpr const char* kChecks[] = {"waits", "uninitialised", "bounds", "races", "collisions", "barriers", "spin"};
constexpr u32 kAllChecks = (1u << std::size(kChecks)) - 1;
constexpr u64 kDefaultMemory = u64{16} << 30;
constexpr int kDefaultVersion = 70051831;  // 7.0.51831
constexpr u32 kMostThreads = 1024;

[[noreturn]] void refuse(const char* name, std::string_view value, const char* allowed) {
  throw std::invalid_argument(std::string(name) + " is \"" + std::string(value) + "\"; it may be " + allowed);
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return value;
}

std::vector<std::string> parts(std::string_view text, char separator) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    std::string_view part = text.substr(at, end - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) result.emplace_back(part);
    at = end + 1;
  }
  return result;
}

u64 number(const char* name, std::string_view text, std::string_view digits, const char* allowed) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) refuse(name, text, allowed);
  return value;
}

std::vector<std::string> read_devices() {
  const char* name = "RDNA_EMULATED_DEVICES";
  const std::string text = variable(name).value_or("gfx1151");
  if (text == "none") return {};
  std::vector<std::string> devices = parts(text, ',');
  for (const std::string& device : devices) {
    if (!device.starts_with("gfx") || device.size() > 200)
      refuse(name, text, "targets such as gfx1151,gfx1100, or none");
  }
  // The real runtime reports the target that this variable names, whatever the device is.
  const std::string version = variable("HSA_OVERRIDE_GFX_VERSION").value_or("");
  if (!version.empty()) {
    const char* allowed = "three numbers such as 11.0.0";
    const std::vector<std::string> numbers = parts(version, '.');
    if (numbers.size() != 3) refuse("HSA_OVERRIDE_GFX_VERSION", version, allowed);
    std::string target = "gfx";
    for (int k = 0; k < 3; ++k) {
      const u64 value = number("HSA_OVERRIDE_GFX_VERSION", version, numbers[k], allowed);
      if (k && value > 15) refuse("HSA_OVERRIDE_GFX_VERSION", version, allowed);
      target += k == 0 ? std::to_string(value) : std::string(1, "0123456789abcdef"[value]);
    }
    std::fill(devices.begin(), devices.end(), target);
  }
  return devices;
}

u64 read_memory() {
  const char* name = "RDNA_EMULATED_MEMORY";
  const auto text = variable(name);
  if (!text || text->empty()) return kDefaultMemory;
  const std::string_view all = *text;
  const std::size_t unit = std::string_view("KMGT").find(all.back());
  const bool scaled = unit != std::string_view::npos;
  const u64 value = number(name, all, all.substr(0, all.size() - scaled), "bytes, such as 4096, 512M or 16G");
  if (scaled && value >> (64 - 10 * (unit + 1))) refuse(name, all, "below 2^64 bytes");
  return scaled ? value << 10 * (unit + 1) : value;
}

int read_version() {
  const char* name = "RDNA_EMULATED_VERSION";
  const auto text = variable(name);
  if (!text || text->empty()) return kDefaultVersion;
  const char* allowed = "a version such as 6.2.41134";
  const std::vector<std::string> numbers = parts(*text, '.');
  if (numbers.empty() || numbers.size() > 3) refuse(name, *text, allowed);
  u64 values[3] = {};
  for (std::size_t k = 0; k < numbers.size(); ++k) values[k] = number(name, *text, numbers[k], allowed);
  if (values[0] > 99 || values[1] > 99 || values[2] > 99999) refuse(name, *text, allowed);
  return static_cast<int>(values[0] * 10000000 + values[1] * 100000 + values[2]);
}

u32 read_checks() {
  const char* name = "RDNA_EMULATED_CHECKS";
  const std::string text = variable(name).value_or("");
  u32 mask = 0;
  for (const std::string& check : parts(text, ',')) {
    const auto found = std::find(std::begin(kChecks), std::end(kChecks), check);
    if (check == "all") mask = kAllChecks;
    else if (found == std::end(kChecks))
      refuse(name, text, "all, or names of waits, uninitialised, bounds, races, collisions, barriers, spin");
    else mask |= 1u << (found - std::begin(kChecks));
  }
  return mask;
}

u32 read_threads() {
  const char* name = "RDNA_EMULATED_THREADS";
  const auto text = variable(name);
  if (text && !text->empty()) {
    const u64 value = number(name, *text, *text, "1 to 1024");
    if (value < 1 || value > kMostThreads) refuse(name, *text, "1 to 1024");
    return static_cast<u32>(value);
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus)) return 1;
  return std::clamp(static_cast<u32>(CPU_COUNT(&cpus)), 1u, kMostThreads);
}

bool read_choice(const char* name, const char* usual, const char* other) {
  const std::string text = variable(name).value_or("");
  if (text.empty() || text == usual) return false;
  if (text != other) refuse(name, text, (std::string(usual) + " or " + other).c_str());
  return true;
}

std::vector<PlannedFailure> read_failures() {
  const char* name = "RDNA_EMULATED_FAIL";
  const std::string text = variable(name).value_or("");
  const char* allowed = "function:call:error, such as hipMalloc:3:2 (call 0: every call), several with commas";
  std::vector<PlannedFailure> failures;
  for (const std::string& entry : parts(text, ',')) {
    const std::vector<std::string> fields = parts(entry, ':');
    if (fields.size() != 3) refuse(name, text, allowed);
    const u64 call = number(name, text, fields[1], allowed), error = number(name, text, fields[2], allowed);
    failures.push_back({fields[0], call, static_cast<int>(error)});
  }
  return failures;
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.devices = read_devices();
  settings.memory_bytes = read_memory();
  settings.version = read_version();
  settings.checks = read_checks();
  settings.threads = read_threads();
  settings.launching = !read_choice("RDNA_EMULATED_LAUNCH", "on", "off");
  settings.deferred = read_choice("RDNA_EMULATED_QUEUE", "eager", "deferred");
  settings.failures = read_failures();
  return settings;
}

}  // namespace rdna::hip
