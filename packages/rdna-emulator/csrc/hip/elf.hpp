// ELF files for AMDGPU: headers, segments, symbols.
#pragma once
#include <vector>

#include "hip/bytes.hpp"

namespace rdna::hip {

struct ProgramHeader {
  u32 type, flags;
  u64 offset, address, physical, file_size, memory_size, alignment;
};
static_assert(sizeof(ProgramHeader) == 56);

struct SectionHeader {
  u32 name, type;
  u64 flags, address, offset, size;
  u32 link, info;
  u64 alignment, entry_size;
};
static_assert(sizeof(SectionHeader) == 64);

struct Symbol {
  std::string name;
  u64 address = 0, size = 0;
  bool defined = false;
};

struct Elf {
  explicit Elf(Bytes);  // throws NotElfError, DamagedError
  std::vector<Symbol> symbols(const SectionHeader&) const;
  std::string target() const;  // "gfx1151"; another text where the machine is not known

  Bytes file;
  u32 flags = 0;
  std::vector<ProgramHeader> segments;
  std::vector<SectionHeader> sections;
};

enum : u32 { kSectionSymbols = 2, kSectionRelocations = 4, kSectionNoBits = 8, kSectionDynamicSymbols = 11 };
enum : u32 { kSegmentLoad = 1, kSegmentNote = 4 };

}  // namespace rdna::hip
