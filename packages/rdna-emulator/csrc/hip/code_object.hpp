// A code object as a device would hold it: the loaded image, and its kernels.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi.h"
#include "hip/bytes.hpp"

namespace rdna::hip {

struct Argument {
  std::string kind;  // "global_buffer", "by_value", "hidden_block_count_x", ...
  u32 offset = 0, size = 0;
  bool hidden() const { return kind.starts_with("hidden_"); }
};

struct KernelObject {
  std::string name;
  std::vector<Argument> arguments;
  u32 argument_bytes = 0;
  u32 explicit_bytes = 0;  // to the end of the last argument that is not hidden
  u32 max_block = 1024;
  u32 registers = 0;
  rdna_kernel record = {};
  std::string refusal;  // why no launch of it can be run; empty: it can
};

struct Variable {
  u64 address = 0, size = 0;
};

struct CodeObject {
  std::unique_ptr<u8[]> memory;
  u8* image = nullptr;  // page-aligned in the memory; a virtual address is an index
  u64 image_bytes = 0;
  u64 text = 0, text_bytes = 0;
  std::vector<rdna_span> spans;
  std::map<std::string, u32> functions;       // byte offsets in the text
  std::map<std::string, Variable> variables;
  std::map<std::string, KernelObject> kernels;
};

// Bytes that are not ELF at all.
struct NotElfError : DamagedError {
  using DamagedError::DamagedError;
};

// A sound code object that this device cannot run.
struct OtherTargetError : DamagedError {
  using DamagedError::DamagedError;
};

constexpr u64 kLargestImage = u64{1} << 30;

// How many bytes an ELF file at this address has, as its headers say; the caller vouches that they are there.
u64 elf_size(const u8*);

// `image` may be an ELF file or an uncompressed bundle of clang's, of which the entry of `target` ("gfx1151") is taken.
Bytes choose_entry(Bytes image, const std::string& target);
// The same where only the address is known.
Bytes choose_entry(const u8* image, const std::string& target);

CodeObject read_code_object(Bytes, const std::string& target);

}  // namespace rdna::hip
