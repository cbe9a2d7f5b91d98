// Text of decoded instructions, in the spelling of LLVM's disassembler.
#pragma once
#include <string>
#include <vector>

#include "isa/op.hpp"

namespace rdna {

std::string disassemble(const Inst&);  // "v_add_f32_e32 v0, s1, v2"; ".long 0x..." for what is no instruction
std::string mnemonic(const Inst&);     // with _e32, _e64 and _dpp
// Registers that the instruction reads or writes: "v4", "s[2:3]", "vcc_lo", "v1.h". EXEC as the mask of a vector
// instruction is not named.
std::vector<std::string> registers_read(const Inst&);
std::vector<std::string> registers_written(const Inst&);

// Parts of the text (register_text.cpp, immediate_text.cpp).
std::string register_name(const Operand&);
// A literal that an inline constant could replace is written lit(...), unless the instruction always has one.
std::string operand_text(const Operand&, OperandType, bool always_literal = false);
std::string hex(u64);
std::string number(u32 value);                // as LLVM writes an immediate: decimal from -16 to 64, hexadecimal beyond
std::string waitcnt_text(u32 immediate);
std::string waitcnt_depctr_text(u32 immediate);
std::string delay_alu_text(u32 immediate);
std::string message_text(u32 immediate);
std::string hardware_register_text(u32 immediate);
std::string swizzle_text(u32 offset);
std::string dpp_text(const DppControl&);

}  // namespace rdna
