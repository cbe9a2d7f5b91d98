// One instruction on its way from words to `Inst` and `InstInfo`: what the decoders of the encodings share.
#pragma once
#include <unordered_map>

#include "isa/op.hpp"

namespace rdna {

// The constant rows of a program, each value once.
class ConstantPool {
 public:
  explicit ConstantPool(std::vector<ConstantRow>& rows) : rows_(rows) {}
  // Each returns what `Inst::src` holds.
  i32 vector(u64 value, int dwords);  // a row for each dword: the low one, the high one, zeros
  i32 scalar(u64 value);              // 8 contiguous bytes

 private:
  i32 offset_of_row(std::size_t row) const { return -1 - static_cast<i32>(row * sizeof(ConstantRow)); }
  std::vector<ConstantRow>& rows_;
  std::unordered_map<u64, i32> vectors_[3];
  std::unordered_map<u64, i32> scalars_;
};

enum OperandCode : u32 {
  kCodeDpp8 = 233,
  kCodeDpp8FetchInactive = 234,
  kCodeDpp16 = 250,
  kCodeLiteral = 255,
  kCodeVgpr = 256,
};

// Scalar numbers that no encoding names: where results of several dwords go that are not wanted, and a lane mask of zeros.
constexpr u16 kNullResult = 208;  // 16 registers
constexpr u16 kNullMask = 224;

struct Decoding {
  TargetMask target;
  const u32* text;    // the instruction's first word
  std::size_t left;   // words from there to the end of the text
  Program& program;
  ConstantPool& pool;
  Inst& inst;
  InstInfo& info;
  u32 words = 0;      // taken so far
  bool literal_taken = false;
  u32 literal = 0;
  bool valid = true;  // false: no instruction

  u32 field(int word, int low, int bits) const { return text[word] >> low & ((1u << bits) - 1); }
  bool take(u32 count) {
    valid = valid && words + count <= left;
    if (valid) words += count;
    return valid;
  }
  u32 take_literal();  // the word after the encoding, which all literal operands share

  bool begin(Format format, u32 opcode, u32 count);  // looks the opcode up and takes `count` words
  void set_op(const OpInfo* op);

  // Operands. An operand number that the type does not allow makes the instruction invalid.
  Operand vgpr(OperandType type, u32 number);
  Operand scalar(OperandType type, u32 code);  // a register only
  Operand source(OperandType type, u32 code);  // register, inline constant or literal
  void set_scalar_source(int k, u32 code);     // fills `info.src[k]` and `inst.src[k]` of a SALU or SMEM instruction
  void set_scalar_result(u32 code);
  i32 vector_offset(const Operand& operand);
  i32 scalar_offset(const Operand& operand);
};

void decode_sop1(Decoding&);
void decode_sop2(Decoding&);
void decode_sopc(Decoding&);
void decode_sopk(Decoding&);
void decode_sopp(Decoding&);
void decode_smem(Decoding&);
void decode_vop1(Decoding&);
void decode_vop2(Decoding&);
void decode_vopc(Decoding&);
void decode_vop3(Decoding&);
void decode_vop3p(Decoding&);
void decode_vopd(Decoding&);
void decode_ds(Decoding&);
void decode_flat(Decoding&);
void decode_mubuf(Decoding&);
void decode_unserved(Decoding&, Format);

inline i32 sign_extend(u32 value, int bits) { return static_cast<i32>(value << (32 - bits)) >> (32 - bits); }

// Bodies of what cannot be executed (traps.cpp).
void trap_unknown(Wave&, const Inst&);    // no instruction
void trap_unserved(Wave&, const Inst&);   // known, but nothing executes it
void trap_past_end(Wave&, const Inst&);
void trap_bad_branch(Wave&, const Inst&);

// Every mnemonic that has a body, in no order; ".clamp" follows where it is the saturating form.
std::vector<std::string> registered_mnemonics();
// Before the body: makes src_vccz and src_execz what they are now (scalar/status.cpp).
void read_status(Wave&, const Inst&);

// The body of a row, `trap_unserved` where none is registered.
Body body_of_row(const OpInfo*);

}  // namespace rdna
