// Names of registers and constants.
#include <cstdio>

#include "isa/disassemble.hpp"

namespace rdna {
namespace {

std::string range(const char* prefix, u32 first, u32 count) {
  const std::string start = std::to_string(first);
  if (count <= 1) return prefix + start;
  return std::string(prefix) + "[" + start + ":" + std::to_string(first + count - 1) + "]";
}

std::string scalar_name(u32 code, u32 count) {
  if (count == 2 && code == kVcc) return "vcc";
  if (count == 2 && code == kExec) return "exec";
  if (code < kVcc) return range("s", code, count);
  if (code >= kTtmp0 && code < kNull) return range("ttmp", code - kTtmp0, count);
  switch (code) {
    case kVcc: return "vcc_lo";
    case kVcc + 1: return "vcc_hi";
    case kNull: return "null";
    case kM0: return "m0";
    case kExec: return "exec_lo";
    case kExec + 1: return "exec_hi";
    case 235: return "src_shared_base";
    case 236: return "src_shared_limit";
    case 237: return "src_private_base";
    case 238: return "src_private_limit";
    case 239: return "src_pops_exiting_wave_id";
    case 251: return "src_vccz";
    case 252: return "src_execz";
    case kScc: return "src_scc";
    default: return "scalar" + std::to_string(code);
  }
}

constexpr u32 kLiteralCode = 255;

// Whether a value could have been an inline constant: written as a literal, it is marked.
bool is_inline(OperandType type, u64 value) {
  for (u32 code = 128; code <= 248; ++code) {
    if (code == 209) code = 240;
    if (expand_constant(type, code) == value) return true;
  }
  return false;
}

}  // namespace

std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string number(u32 value) {
  const i32 with_sign = static_cast<i32>(value);
  return with_sign >= -16 && with_sign <= 64 ? std::to_string(with_sign) : hex(value);
}

std::string register_name(const Operand& operand) {
  return operand.kind == OperandKind::vgpr ? range("v", operand.reg, operand.dwords) : scalar_name(operand.reg, operand.dwords);
}

std::string operand_text(const Operand& operand, OperandType type, bool always_literal) {
  static constexpr const char* kFloats[9] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
  if (operand.kind != OperandKind::constant) return register_name(operand);
  const u32 code = operand.reg;
  if (code == kNull) return "null";
  if (code >= 240 && code <= 248) {
    const bool wide = type == OperandType::f64 || type == OperandType::b64 || type == OperandType::i64;
    return code == 248 && wide ? "0.15915494309189532" : kFloats[code - 240];
  }
  if (code == kLiteralCode) {
    const std::string literal = hex(type == OperandType::f64 ? operand.value >> 32 : static_cast<u32>(operand.value));
    return !always_literal && is_inline(type, operand.value) ? "lit(" + literal + ")" : literal;
  }
  return std::to_string(code <= 192 ? static_cast<int>(code) - 128 : 192 - static_cast<int>(code));
}

}  // namespace rdna
