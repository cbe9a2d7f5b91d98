// Clang's offload bundles: a list of (offset, size, target), and the files.
#include <algorithm>

#include "hip/code_object.hpp"

namespace rdna::hip {
namespace {

constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressed = "CCOB";
constexpr u64 kMostEntries = 4096;
constexpr u64 kLongestTarget = 4096;

// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" is for gfx90a.
std::string processor_of(std::string_view entry) {
  const auto dash = entry.rfind("--");
  if (dash == std::string_view::npos) return {};
  std::string_view name = entry.substr(dash + 2);
  return std::string(name.substr(0, name.find(':')));
}

bool is_device(std::string_view entry) { return entry.starts_with("hip"); }

}  // namespace

Bytes choose_entry(Bytes image, const std::string& target) {
  if (image.view().starts_with(kCompressed)) {
    throw NotElfError("a compressed offload bundle; link it with --no-offload-compress, or unbundle it");
  }
  if (!image.view().starts_with(kMagic)) return image;
  const u64 count = image.get<u64>(kMagic.size(), "bundle");
  if (count > kMostEntries) throw DamagedError("the bundle would have " + std::to_string(count) + " entries");
  u64 at = kMagic.size() + 8;
  std::string seen;
  Bytes generic;
  for (u64 k = 0; k < count; ++k) {
    const u64 offset = image.get<u64>(at, "bundle"), size = image.get<u64>(at + 8, "bundle");
    const u64 length = image.get<u64>(at + 16, "bundle");
    if (length > kLongestTarget) throw DamagedError("a target of the bundle would have a name of many bytes");
    const std::string_view name = image.part(at + 24, length, "bundle").view();
    at += 24 + length;
    if (!is_device(name)) continue;
    const std::string processor = processor_of(name);
    if (processor == target) return image.part(offset, size, "bundle's entry");
    if (processor == "gfx11-generic") generic = image.part(offset, size, "bundle's entry");
    seen += (seen.empty() ? "" : ", ") + processor;
  }
  if (generic.size() && target.starts_with("gfx11")) return generic;
  throw OtherTargetError("the bundle has no code object for " + target + "; it has " + (seen.empty() ? "none" : seen));
}

Bytes choose_entry(const u8* image, const std::string& target) {
  if (std::memcmp(image, "\177ELF", 4) == 0) return {image, elf_size(image)};
  if (std::memcmp(image, "CCOB", 4) == 0) return choose_entry(Bytes(image, 4), target);
  for (std::size_t k = 0; k < kMagic.size(); ++k) {
    if (image[k] != static_cast<u8>(kMagic[k])) throw NotElfError("neither an ELF file nor an offload bundle");
  }
  // The list says where the last entry ends.
  const Bytes open(image, kLargestImage);
  u64 end = kMagic.size() + 8;
  u64 at = end;
  const u64 count = open.get<u64>(kMagic.size(), "bundle");
  if (count > kMostEntries) throw DamagedError("the bundle would have " + std::to_string(count) + " entries");
  for (u64 k = 0; k < count; ++k) {
    const u64 offset = open.get<u64>(at, "bundle"), size = open.get<u64>(at + 8, "bundle");
    const u64 length = open.get<u64>(at + 16, "bundle");
    if (length > kLongestTarget) throw DamagedError("a target of the bundle would have a name of many bytes");
    at += 24 + length;
    open.part(offset, size, "bundle's entry");
    end = std::max({end, at, offset + size});
  }
  return choose_entry(Bytes(image, end), target);
}

}  // namespace rdna::hip
