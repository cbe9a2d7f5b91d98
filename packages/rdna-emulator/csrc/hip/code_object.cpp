#include "hip/code_object.hpp"

#include <algorithm>

#include "hip/elf.hpp"
#include "hip/msgpack.hpp"

namespace rdna::hip {
namespace {

constexpr u64 kPage = 4096;
constexpr u32 kNoteMetadata = 32;
constexpr u32 kRelocationAbsolute64 = 3, kRelocationRelative64 = 13;
constexpr std::int64_t kMostArgumentBytes = 65536;
constexpr u32 kMostScratch = 262144;  // bytes of a lane
constexpr u32 kStack = 16384;         // of a lane, where the compiler could not tell how much calls need
constexpr u32 kMode = 0xf0, kModeMask = 0x8000ff;  // nearest even, denormals kept

Value metadata_of(const Elf& elf) {
  for (const ProgramHeader& segment : elf.segments) {
    if (segment.type != kSegmentNote) continue;
    const Bytes notes = elf.file.part(segment.offset, segment.file_size, "note");
    for (u64 at = 0; at + 12 <= notes.size();) {
      const u64 name_bytes = notes.get<u32>(at, "note"), bytes = notes.get<u32>(at + 4, "note");
      const u32 type = notes.get<u32>(at + 8, "note");
      const u64 begin = at + 12 + (name_bytes + 3) / 4 * 4;
      const std::string_view name = notes.part(at + 12, name_bytes, "note").view();
      if (type == kNoteMetadata && name.starts_with("AMDGPU")) {
        return read_msgpack(notes.part(begin, bytes, "metadata note"));
      }
      at = begin + (bytes + 3) / 4 * 4;
    }
  }
  throw DamagedError("no metadata note (NT_AMDGPU_METADATA): is it a relocatable object that was not linked?");
}

void load_segments(const Elf& elf, CodeObject& object) {
  u64 size = 0;
  for (const ProgramHeader& s : elf.segments) {
    if (s.type != kSegmentLoad) continue;
    if (s.address > kLargestImage || s.memory_size > kLargestImage)
      throw DamagedError("the image would take over 1 GiB");
    if (s.file_size > s.memory_size) throw DamagedError("a segment has more bytes in the file than in memory");
    size = std::max(size, s.address + s.memory_size);
  }
  if (!size) throw DamagedError("nothing to load: is it a relocatable object that was not linked?");
  object.memory.reset(new u8[size + kPage]());
  const u64 start = reinterpret_cast<u64>(object.memory.get());
  object.image = object.memory.get() + (kPage - start % kPage) % kPage;
  object.image_bytes = size;
  const u64 base = reinterpret_cast<u64>(object.image);
  for (const ProgramHeader& s : elf.segments) {
    if (s.type != kSegmentLoad) continue;
    const Bytes contents = elf.file.part(s.offset, s.file_size, "segment");
    if (contents.size()) std::memcpy(object.image + s.address, contents.data(), contents.size());
    const bool code = s.flags & 1, writable = s.flags & 2;
    const u64 bytes = code ? s.file_size : s.memory_size;
    const char* name = code       ? "the code object's code"
                       : writable ? "the code object's variables"
                                  : "the code object's constants";
    object.spans.push_back({base + s.address, bytes, base, name, writable, 0, 0});
    if (code && !object.text_bytes) object.text = s.address, object.text_bytes = bytes;
  }
  if (!object.text_bytes) throw DamagedError("no executable segment");
}

void relocate(const Elf& elf, CodeObject& object) {
  const u64 base = reinterpret_cast<u64>(object.image);
  for (const SectionHeader& section : elf.sections) {
    if (section.type != kSectionRelocations || !section.size) continue;
    if (section.link >= elf.sections.size() || elf.sections[section.link].type != kSectionDynamicSymbols) continue;
    const std::vector<Symbol> symbols = elf.symbols(elf.sections[section.link]);
    const Bytes entries = elf.file.part(section.offset, section.size, "relocations");
    for (u64 at = 0; at + 24 <= entries.size(); at += 24) {
      const u64 place = entries.get<u64>(at, "relocation"), info = entries.get<u64>(at + 8, "relocation");
      u64 value = base + entries.get<u64>(at + 16, "relocation");
      const u32 type = static_cast<u32>(info);
      if (type == kRelocationAbsolute64) {
        if (info >> 32 >= symbols.size()) throw DamagedError("a relocation names no symbol");
        const Symbol& symbol = symbols[info >> 32];
        if (!symbol.defined) throw DamagedError(symbol.name + " is not defined in the code object");
        value += symbol.address;
      } else if (type != kRelocationRelative64) {
        throw DamagedError("relocation type " + std::to_string(type) + " is not supported (3 and 13 are)");
      }
      if (place > object.image_bytes || object.image_bytes - place < 8)
        throw DamagedError("a relocation lies outside the image");
      std::memcpy(object.image + place, &value, 8);
    }
  }
}

// The kernel descriptor: how a wave begins.
void read_descriptor(const CodeObject& object, u64 address, bool dynamic_stack, KernelObject& kernel) {
  const Bytes record = Bytes(object.image, object.image_bytes).part(address, 64, "kernel descriptor");
  const u64 entry = address + record.get<u64>(16, "kernel descriptor");
  if (entry < object.text || entry - object.text >= object.text_bytes || entry % 4) {
    throw DamagedError("kernel " + kernel.name + " begins outside the code");
  }
  const u32 registers1 = record.get<u32>(48, "kernel descriptor"),
            registers2 = record.get<u32>(52, "kernel descriptor");
  const u16 properties = record.get<u16>(56, "kernel descriptor");
  const u32 private_bytes = record.get<u32>(4, "kernel descriptor");
  rdna_kernel& k = kernel.record;
  k.entry = static_cast<u32>(entry - object.text);
  k.user_sgprs = properties & 0x7f;
  k.user_sgpr_count = registers2 >> 1 & 0x1f;
  k.workgroup_ids = registers2 >> 7 & 0xf;
  k.workitem_ids = registers2 >> 11 & 3;
  k.mode = (registers1 >> 12 & 0xff)       // rounding and denormals
           | (registers1 >> 21 & 1) << 8   // DX10_CLAMP
           | (registers1 >> 23 & 1) << 9   // IEEE
           | (registers1 >> 26 & 1) << 23; // FP16_OVFL
  k.vgprs = std::min(256u, ((registers1 & 0x3f) + 1) * 8);
  k.lds_bytes = record.get<u32>(0, "kernel descriptor");
  k.private_bytes = dynamic_stack ? std::max(private_bytes, kStack) : private_bytes;
  if (!(properties >> 10 & 1)) kernel.refusal = "it was compiled for waves of 64 lanes; this runs waves of 32";
  else if (private_bytes > kMostScratch)
    kernel.refusal = "it wants " + std::to_string(private_bytes) + " bytes of scratch a lane";
  else if ((k.mode & kModeMask) != kMode) kernel.refusal = "it begins with a FLOAT_MODE other than 0xf0";
}

KernelObject read_kernel(const Value& entry, const std::map<std::string, Symbol>& symbols, const CodeObject& object) {
  KernelObject kernel;
  kernel.name = entry.string(".name", "");
  const auto descriptor = symbols.find(entry.string(".symbol", (kernel.name + ".kd").c_str()));
  if (descriptor == symbols.end() || !descriptor->second.defined)
    throw DamagedError("kernel " + kernel.name + " has no descriptor");
  std::int64_t bytes = entry.number(".kernarg_segment_size", 0), visible = 0;
  const Value* arguments = entry.find(".args");
  for (const Value& argument : arguments ? arguments->list : std::vector<Value>()) {
    const std::int64_t offset = argument.number(".offset", -1), size = argument.number(".size", -1);
    if (offset < 0 || size < 0 || offset > kMostArgumentBytes || size > kMostArgumentBytes) {
      throw DamagedError("an argument of kernel " + kernel.name + " has no place");
    }
    kernel.arguments.push_back({argument.string(".value_kind", ""), static_cast<u32>(offset), static_cast<u32>(size)});
    bytes = std::max(bytes, offset + size);
    if (!kernel.arguments.back().hidden()) visible = std::max(visible, offset + size);
  }
  if (bytes < 0 || bytes > kMostArgumentBytes)
    throw DamagedError("kernel " + kernel.name + " has too many bytes of arguments");
  kernel.argument_bytes = static_cast<u32>(bytes);
  kernel.explicit_bytes = static_cast<u32>(visible);
  kernel.max_block = static_cast<u32>(entry.number(".max_flat_workgroup_size", 1024));
  kernel.registers = static_cast<u32>(entry.number(".vgpr_count", 0));
  read_descriptor(object, descriptor->second.address, entry.number(".uses_dynamic_stack", 0) != 0, kernel);
  return kernel;
}

}  // namespace

CodeObject read_code_object(Bytes file, const std::string& target) {
  const Elf elf(file);
  const std::string found = elf.target();
  if (found != target && !(found == "gfx11-generic" && target.starts_with("gfx11"))) {
    throw OtherTargetError("the code object is for " + found + ", the device is " + target);
  }
  const Value metadata = metadata_of(elf);
  CodeObject object;
  load_segments(elf, object);
  relocate(elf, object);
  std::map<std::string, Symbol> symbols;
  for (const SectionHeader& section : elf.sections) {
    if (section.type != kSectionSymbols && section.type != kSectionDynamicSymbols) continue;
    for (const Symbol& symbol : elf.symbols(section)) symbols[symbol.name] = symbol;
  }
  for (const auto& [name, symbol] : symbols) {
    if (!symbol.defined || name.empty()) continue;
    if (symbol.address >= object.text && symbol.address - object.text < object.text_bytes) {
      object.functions[name] = static_cast<u32>(symbol.address - object.text);
    } else if (symbol.size && !name.ends_with(".kd") && symbol.address < object.image_bytes &&
               symbol.size <= object.image_bytes - symbol.address) {
      object.variables[name] = {symbol.address, symbol.size};
    }
  }
  const Value* kernels = metadata.find("amdhsa.kernels");
  if (!kernels || kernels->kind != Value::Kind::list) throw DamagedError("the metadata note lists no kernels");
  for (const Value& entry : kernels->list) {
    KernelObject kernel = read_kernel(entry, symbols, object);
    const std::string name = kernel.name;
    object.kernels[name] = std::move(kernel);
  }
  for (auto& [name, kernel] : object.kernels) kernel.record.name = name.c_str();
  return object;
}

}  // namespace rdna::hip
