// The opcode table of gfx11: what each instruction is called, reads and writes.
#pragma once
#include <span>
#include <string_view>

#include "core/machine.hpp"

namespace rdna {

enum class Format : u8 {
  sop1, sop2, sopc, sopk, sopp, smem,
  vop1, vop2, vopc, vop3, vop3p, vopd,
  ds, flat, global, scratch, mubuf,
  mtbuf, mimg, exp, ldsdir, vinterp,  // known by name and size only: they trap on execution
};
constexpr int kFormats = 22;

enum class OpClass : u8 {
  valu, trans, wmma, salu, smem, lds, global_load, global_store, atomic, flat, scratch, branch, wait, barrier, other,
};
const char* name_of(OpClass);

// What an operand holds; the inline constants and literals that it accepts are expanded accordingly.
enum class OperandType : u8 {
  none,
  b8, b16, b32, b64, i64, b96, b128, b256, b512,  // bits and integers; a literal of b64 is zero-extended, of i64 sign-extended
  f16, bf16, f32, f64,
  b16_sign,                                        // 16 bits; negation and absolute value apply to the highest
  b8_hi, b16_hi, f16_hi,                           // in the high half of a register
  pk_b16, pk_f16, pk_bf16,                         // two halves
  x8_f32, x8_f16, x8_bf16, x8_b32,                 // eight registers of a matrix; a constant is one repeated register
  s32,                                             // always a scalar
  mask,                                            // one bit a lane, in a scalar
  message,                                         // the number of a message, in the place of a source
};
u8 dwords_of(OperandType);
u8 bytes_of(OperandType);        // of the first register: 1, 2 or 4
bool in_high_half(OperandType);
bool is_float(OperandType);      // negation and absolute value apply
u64 expand_constant(OperandType, u32 code);     // an inline constant (operand numbers 128 to 208 and 240 to 248)
u64 expand_literal(OperandType, u32 literal);

enum OpFlag : u32 {
  kReadsScc = 1u << 0,   // registers that the encoding does not name
  kWritesScc = 1u << 1,
  kReadsVcc = 1u << 2,
  kReadsExec = 1u << 3,  // as data; every vector instruction is masked by EXEC besides
  kWritesExec = 1u << 4,
  kReadsM0 = 1u << 5,
  kReadsDst = 1u << 6,     // the result keeps a part of the old register: the register is read as well
  kAccumulates = 1u << 7,  // source 2 is the destination register
  kHasLiteral = 1u << 8,   // one source is a literal that always follows
  kOneForm = 1u << 9,      // no VOP3 form, and no suffix in its name
  kSwaps = 1u << 10,       // the source register is the second result
  kPacked = 1u << 11,      // op_sel, op_sel_hi, neg_lo and neg_hi apply to halves
  kMix = 1u << 12,         // each source is f32, or f16 where op_sel_hi says so
  kSigns = 1u << 13,       // neg_lo says which sources are signed
  kSlow = 1u << 14,        // a quarter of the usual rate, like the transcendental class
  kLoad = 1u << 15,
  kStore = 1u << 16,
  kAtomic = 1u << 17,
  kBranches = 1u << 18,    // to an address in the instruction
  kEnds = 1u << 19,
  kUnserved = 1u << 20,    // traps on execution
  kLiteralMiddle = 1u << 21,  // the literal is source 1, not source 2
  kNoDpp = 1u << 22,
};

enum TargetMask : u8 { kGfx1100 = 1, kGfx1151 = 2, kAllTargets = 3 };
// 0 for a target that the emulator does not know.
TargetMask target_of(std::string_view name);

struct OpInfo {
  const char* name;  // LLVM's gfx11 spelling without _e32, _e64, _dpp
  Format format;
  OpClass cls;
  u8 targets;
  u16 opcode;        // in its own format: a VOP1, VOP2 or VOPC operation's VOP3 number is not in the table
  u32 flags;
  OperandType dst[2];
  // VALU: 0 to 2 the sources that bodies read, 3 a lane mask (carry in, v_cndmask). Memory: 0 address, 1 data, 2 second data.
  OperandType src[4];

  bool has(OpFlag flag) const { return flags & flag; }
};

std::span<const OpInfo> ops();
// Row of a VOPD instruction as a whole, in Format::vopd; its halves have rows of their own.
constexpr u32 kPairOpcode = 0x20;
// The row of an opcode, null where the target has none. `find_vop3` takes the 10-bit number of a VOP3 encoding.
const OpInfo* find_op(TargetMask target, Format format, u32 opcode);
const OpInfo* find_vop3(TargetMask target, u32 opcode);
inline u16 row_of(const OpInfo* op) { return static_cast<u16>(op - ops().data()); }

}  // namespace rdna
