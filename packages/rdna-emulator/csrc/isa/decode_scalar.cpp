// SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.
#include "isa/decoding.hpp"

namespace rdna {

void decode_sop1(Decoding& d) {
  if (!d.begin(Format::sop1, d.field(0, 8, 8), 1)) return;
  const OpInfo& op = *d.info.op;
  if (op.dst[0] != OperandType::none) d.set_scalar_result(d.field(0, 16, 7));
  if (op.src[0] == OperandType::message) {
    d.inst.imm = d.field(0, 0, 8);
  } else if (op.src[0] != OperandType::none) {
    d.set_scalar_source(0, d.field(0, 0, 8));
  }
}

void decode_sop2(Decoding& d) {
  if (!d.begin(Format::sop2, d.field(0, 23, 7), 1)) return;
  const OpInfo& op = *d.info.op;
  const u32 dst = d.field(0, 16, 7);
  const u32 second = d.field(0, 8, 8);
  d.set_scalar_result(dst);
  d.set_scalar_source(0, d.field(0, 0, 8));
  if (op.has(kLiteralMiddle)) {
    d.set_scalar_source(1, kCodeLiteral);
    d.set_scalar_source(2, second);
  } else {
    d.set_scalar_source(1, second);
    if (op.has(kHasLiteral)) d.set_scalar_source(2, kCodeLiteral);
    if (op.has(kAccumulates)) d.set_scalar_source(2, dst);
  }
}

void decode_sopc(Decoding& d) {
  if (!d.begin(Format::sopc, d.field(0, 16, 7), 1)) return;
  d.set_scalar_source(0, d.field(0, 0, 8));
  d.set_scalar_source(1, d.field(0, 8, 8));
}

void decode_sopk(Decoding& d) {
  if (!d.begin(Format::sopk, d.field(0, 23, 5), 1)) return;
  const OpInfo& op = *d.info.op;
  const u32 reg = d.field(0, 16, 7);
  const u32 immediate = d.field(0, 0, 16);
  const bool compares_unsigned = op.opcode >= 9 && op.opcode <= 14;
  d.inst.imm = compares_unsigned ? immediate : static_cast<u32>(sign_extend(immediate, 16));
  if (op.dst[0] != OperandType::none) d.set_scalar_result(reg);
  if (op.src[0] != OperandType::none) d.set_scalar_source(0, op.has(kHasLiteral) ? u32{kCodeLiteral} : reg);
}

void decode_sopp(Decoding& d) {
  if (!d.begin(Format::sopp, d.field(0, 16, 7), 1)) return;
  d.inst.imm = static_cast<u32>(sign_extend(d.field(0, 0, 16), 16));
}

void decode_smem(Decoding& d) {
  if (!d.begin(Format::smem, d.field(0, 18, 8), 2)) return;
  const OpInfo& op = *d.info.op;
  d.info.dlc = d.field(0, 13, 1);
  d.info.glc = d.field(0, 14, 1);
  if (op.src[0] == OperandType::none) return;
  if (op.dst[0] != OperandType::none) d.set_scalar_result(d.field(0, 6, 7));
  d.set_scalar_source(0, d.field(0, 0, 6) * 2);
  d.info.offset = sign_extend(d.field(1, 0, 21), 21);
  d.inst.imm = static_cast<u32>(d.info.offset);
  const u32 register_offset = d.field(1, 25, 7);
  Operand offset = d.source(OperandType::b32, register_offset);
  d.inst.src[1] = d.scalar_offset(offset);
  if (register_offset != kNull) d.info.src[3] = offset;
}

}  // namespace rdna
