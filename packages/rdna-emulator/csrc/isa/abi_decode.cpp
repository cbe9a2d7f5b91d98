// The disassembler for Python: one call gives a text with a line for each instruction.
#include <cstring>
#include <exception>

#include "isa/decode.hpp"
#include "isa/decoding.hpp"
#include "isa/disassemble.hpp"

namespace rdna {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string listing(const char* target, std::span<const u8> code) {
  const Program program = decode_program(target, code, {}, 0);
  std::string text;
  for (const Inst& inst : program.insts) {
    const InstInfo& info = *inst.info;
    if (inst.words == 0) break;  // past the end
    text += std::to_string(info.address) + '\t' + std::to_string(4 * inst.words) + '\t' + (info.op ? info.op->name : "") + '\t' +
            (info.op ? name_of(info.op->cls) : "") + '\t' + disassemble(inst) + '\t' + joined(registers_read(inst)) + '\t' +
            joined(registers_written(inst)) + '\n';
  }
  return text;
}

std::string opcode_table() {
  std::string text;
  for (const OpInfo& op : ops()) {
    text += std::to_string(static_cast<int>(op.format)) + '\t' + std::to_string(op.opcode) + '\t' + op.name + '\t' +
            std::to_string(op.targets) + '\t' + name_of(op.cls) + '\t' + (body_of_row(&op) == trap_unserved ? "0" : "1") + '\n';
  }
  return text;
}

std::string bodies() {
  std::string text;
  for (const std::string& name : registered_mnemonics()) text += name + '\n';
  return text;
}

// Copies as much as `capacity` holds; the caller learns the whole size.
i64 copy_out(const std::string& text, char* out, u64 capacity) {
  std::memcpy(out, text.data(), text.size() < capacity ? text.size() : capacity);
  return static_cast<i64>(text.size());
}

}  // namespace
}  // namespace rdna

extern "C" {

// A line an instruction: address, bytes, mnemonic of the table, class, text, registers read, registers written, separated by
// tabs. Returns the size of the listing, of which at most `capacity` bytes are stored; where it fails, minus the size of the
// message stored instead.
[[gnu::visibility("default")]] std::int64_t rdna_decode_text(const char* target, const std::uint8_t* code, std::uint64_t size,
                                                             char* out, std::uint64_t capacity) {
  try {
    return rdna::copy_out(rdna::listing(target, {code, size}), out, capacity);
  } catch (const std::exception& error) {
    return -rdna::copy_out(error.what(), out, capacity);
  }
}

// A line a row of the opcode table: format, opcode, mnemonic, targets, class, whether it can be executed.
[[gnu::visibility("default")]] std::int64_t rdna_opcode_table(char* out, std::uint64_t capacity) {
  return rdna::copy_out(rdna::opcode_table(), out, capacity);
}

// A line a mnemonic that has a body.
[[gnu::visibility("default")]] std::int64_t rdna_bodies(char* out, std::uint64_t capacity) {
  return rdna::copy_out(rdna::bodies(), out, capacity);
}
}
