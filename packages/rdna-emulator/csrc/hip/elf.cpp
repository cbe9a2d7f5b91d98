#include "hip/elf.hpp"

#include <algorithm>

#include "hip/code_object.hpp"

namespace rdna::hip {
namespace {

constexpr u16 kMachineAmdgpu = 224;
constexpr u8 kOsAbiHsa = 64;
constexpr u64 kHeaderBytes = 64, kSymbolBytes = 24;

// EF_AMDGPU_MACH of e_flags, for the targets that people are likely to mix up.
constexpr struct {
  u32 machine;
  const char* name;
} kMachines[] = {
    {0x02c, "gfx900"},  {0x02f, "gfx906"},  {0x030, "gfx908"},  {0x033, "gfx1010"},       {0x036, "gfx1030"},
    {0x037, "gfx1031"}, {0x03f, "gfx90a"},  {0x041, "gfx1100"}, {0x043, "gfx1150"},       {0x044, "gfx1103"},
    {0x046, "gfx1101"}, {0x047, "gfx1102"}, {0x048, "gfx1200"}, {0x04a, "gfx1151"},       {0x04c, "gfx942"},
    {0x04e, "gfx1201"}, {0x04f, "gfx950"},  {0x054, "gfx11-generic"}, {0x055, "gfx1152"}, {0x058, "gfx1153"},
};

template <class T>
std::vector<T> table(const Bytes& file, u64 offset, u64 entry, u64 count, const char* what) {
  std::vector<T> entries;
  if (count && entry < sizeof(T))
    throw DamagedError("a " + std::string(what) + " has " + std::to_string(entry) + " bytes");
  if (offset > file.size()) throw DamagedError("truncated: the " + std::string(what) + " lies past the file's end");
  for (u64 k = 0; k < count; ++k) entries.push_back(file.get<T>(offset + k * entry, what));
  return entries;
}

}  // namespace

Elf::Elf(Bytes bytes) : file(bytes) {
  if (!file.view().starts_with("\177ELF")) throw NotElfError("not an ELF file");
  file.part(0, kHeaderBytes, "ELF header");
  if (file.data()[4] != 2 || file.data()[5] != 1) throw DamagedError("not a 64-bit little-endian ELF file");
  const u16 machine = file.get<u16>(18, "ELF header");
  if (machine != kMachineAmdgpu)
    throw OtherTargetError("an ELF file for machine " + std::to_string(machine) + ", not for AMDGPU");
  if (file.data()[7] != kOsAbiHsa) throw OtherTargetError("an AMDGPU file for another OS ABI than HSA");
  flags = file.get<u32>(48, "ELF header");
  segments = table<ProgramHeader>(file, file.get<u64>(32, "ELF header"), file.get<u16>(54, "ELF header"),
                                  file.get<u16>(56, "ELF header"), "program header");
  sections = table<SectionHeader>(file, file.get<u64>(40, "ELF header"), file.get<u16>(58, "ELF header"),
                                  file.get<u16>(60, "ELF header"), "section header");
}

std::vector<Symbol> Elf::symbols(const SectionHeader& section) const {
  if (section.link >= sections.size()) throw DamagedError("a symbol table names no string table");
  const SectionHeader& names = sections[section.link];
  const Bytes strings = file.part(names.offset, names.size, "string table");
  const Bytes entries = file.part(section.offset, section.size, "symbol table");
  std::vector<Symbol> result;
  for (u64 at = 0; at + kSymbolBytes <= entries.size(); at += kSymbolBytes) {
    result.push_back({strings.text(entries.get<u32>(at, "symbol table"), "string table"),
                      entries.get<u64>(at + 8, "symbol table"), entries.get<u64>(at + 16, "symbol table"),
                      entries.get<u16>(at + 6, "symbol table") != 0});
  }
  return result;
}

std::string Elf::target() const {
  for (const auto& known : kMachines) {
    if (known.machine == (flags & 0xff)) return known.name;
  }
  return "an unknown target (machine " + std::to_string(flags & 0xff) + ")";
}

u64 elf_size(const u8* data) {
  const Bytes open(data, kLargestImage);
  const u64 segments_at = open.get<u64>(32, "ELF header"), sections_at = open.get<u64>(40, "ELF header");
  const u64 segment_bytes = open.get<u16>(54, "ELF header"), segment_count = open.get<u16>(56, "ELF header");
  const u64 section_bytes = open.get<u16>(58, "ELF header"), section_count = open.get<u16>(60, "ELF header");
  if (segments_at > kLargestImage || sections_at > kLargestImage) throw DamagedError("its headers lie past 1 GiB");
  u64 end = std::max(
      {kHeaderBytes, segments_at + segment_bytes * segment_count, sections_at + section_bytes * section_count});
  for (const auto& s : table<ProgramHeader>(open, segments_at, segment_bytes, segment_count, "program header")) {
    open.part(s.offset, s.file_size, "segment");
    end = std::max(end, s.offset + s.file_size);
  }
  for (const auto& s : table<SectionHeader>(open, sections_at, section_bytes, section_count, "section header")) {
    if (s.type == kSectionNoBits) continue;
    open.part(s.offset, s.size, "section");
    end = std::max(end, s.offset + s.size);
  }
  return end;
}

}  // namespace rdna::hip
