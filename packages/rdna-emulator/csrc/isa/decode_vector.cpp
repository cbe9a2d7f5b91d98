// VOP1, VOP2, VOPC, VOP3 and VOP3P, with DPP and the two ways of naming 16-bit halves.
#include "isa/decoding.hpp"
#include "valu/prologue.hpp"

namespace rdna {
namespace {

bool is_half(OperandType type) {
  using enum OperandType;
  return type == b16 || type == b16_sign || type == f16 || type == bf16;
}

// The short encodings have 7 bits for the register of a 16-bit operand; bit 7 chooses its half.
Operand short_vgpr(Decoding& d, OperandType type, u32 field) {
  Operand operand = d.vgpr(type, is_half(type) ? field & 0x7f : field);
  if (is_half(type)) operand.high = field & 0x80;
  return operand;
}

Operand short_source(Decoding& d, OperandType type, u32 code) {
  return code >= kCodeVgpr ? short_vgpr(d, type, code - kCodeVgpr) : d.source(type, code);
}

// Takes the DPP dword where `code` announces one. Returns the operand number of source 0 itself.
u32 take_dpp(Decoding& d, u32 code) {
  if (code != kCodeDpp8 && code != kCodeDpp8FetchInactive && code != kCodeDpp16) return code;
  const OpInfo& op = *d.info.op;
  if (op.has(kNoDpp) || dwords_of(op.src[0]) > 1 || dwords_of(op.dst[0]) > 1) d.valid = false;
  if (!d.take(1)) return code;
  const int word = static_cast<int>(d.words) - 1;
  DppControl& dpp = d.info.dpp;
  if (code == kCodeDpp16) {
    dpp.kind = DppControl::Kind::dpp16;
    dpp.control = d.field(word, 8, 9);
    dpp.fetch_inactive = d.field(word, 18, 1);
    dpp.bound_control = d.field(word, 19, 1);
    dpp.bank_mask = static_cast<u8>(d.field(word, 24, 4));
    dpp.row_mask = static_cast<u8>(d.field(word, 28, 4));
  } else {
    dpp.kind = DppControl::Kind::dpp8;
    dpp.control = d.field(word, 8, 24);
    dpp.fetch_inactive = code == kCodeDpp8FetchInactive;
  }
  return kCodeVgpr + d.field(word, 0, 8);
}

// Negation and absolute value of sources 0 and 1 in the DPP16 dword of a short encoding.
void apply_dpp_modifiers(Decoding& d) {
  if (d.info.dpp.kind != DppControl::Kind::dpp16) return;
  const int word = static_cast<int>(d.words) - 1;
  for (int k = 0; k < 2; ++k) {
    if (!is_float(d.info.op->src[k])) continue;
    d.info.src[k].negate = d.field(word, 20 + 2 * k, 1);
    d.info.src[k].absolute = d.field(word, 21 + 2 * k, 1);
  }
}

void set_result(Decoding& d, Operand operand) {
  if (operand.kind == OperandKind::sgpr && operand.reg >= 128) d.valid = false;
  d.info.dst[0] = operand;
  d.inst.dst = operand.reg;
  if (operand.high) d.inst.flags |= kDestinationHigh;
}

void set_mask_result(Decoding& d, u32 code) {
  if (code >= 128) d.valid = false;
  const int slot = d.info.op->dst[0] == OperandType::mask ? 0 : 1;
  d.info.dst[slot] = d.scalar(OperandType::mask, code);
  d.inst.sdst = static_cast<u16>(code);
  if (slot == 0) d.inst.dst = d.inst.sdst;
}

void set_mask_source(Decoding& d, u32 code) {
  d.info.src[3] = d.source(OperandType::mask, code);
  if (d.info.src[3].kind != OperandKind::sgpr && code != kNull) d.valid = false;
  d.inst.smask = code == kNull ? kNullMask : static_cast<u16>(code);
}

// Everything that follows from the operands: the accumulator, the exchanged register, offsets and the prologue.
void finish(Decoding& d) {
  if (!d.valid) return;
  const OpInfo& op = *d.info.op;
  if (op.has(kAccumulates)) d.info.src[2] = d.info.dst[0];
  if (op.has(kSwaps)) {
    d.info.dst[1] = d.info.src[0];
    if (d.info.src[0].kind != OperandKind::vgpr) d.valid = false;
  }
  for (int k = 0; k < 3; ++k) {
    if (d.info.src[k].kind != OperandKind::none) d.inst.src[k] = d.vector_offset(d.info.src[k]);
  }
  if (d.inst.body == trap_unserved) return;
  choose_prologue(d.inst, d.info, op.name);
}

void set_short_source0(Decoding& d, u32 code) {
  d.info.src[0] = short_source(d, d.info.op->src[0], take_dpp(d, code));
}

}  // namespace

void decode_vop1(Decoding& d) {
  if (!d.begin(Format::vop1, d.field(0, 9, 8), 1)) return;
  const OpInfo& op = *d.info.op;
  if (op.src[0] != OperandType::none) {
    set_short_source0(d, d.field(0, 0, 9));
    apply_dpp_modifiers(d);
    const u32 dst = d.field(0, 17, 8);
    set_result(d, op.dst[0] == OperandType::s32 ? d.scalar(OperandType::s32, dst) : short_vgpr(d, op.dst[0], dst));
  }
  finish(d);
}

void decode_vop2(Decoding& d) {
  if (!d.begin(Format::vop2, d.field(0, 25, 6), 1)) return;
  const OpInfo& op = *d.info.op;
  const u32 second = d.field(0, 9, 8);
  const u32 first = d.field(0, 0, 9);
  set_result(d, short_vgpr(d, op.dst[0], d.field(0, 17, 8)));
  if (op.has(kHasLiteral)) {
    // The literal is shared with source 0, which may name it too.
    d.info.src[0] = short_source(d, op.src[0], first);
    const int at = op.has(kLiteralMiddle) ? 1 : 2;
    d.info.src[at] = d.source(op.src[at], kCodeLiteral);
    d.info.src[3 - at] = short_vgpr(d, op.src[3 - at], second);
  } else {
    set_short_source0(d, first);
    d.info.src[1] = short_vgpr(d, op.src[1], second);
    apply_dpp_modifiers(d);
  }
  if (op.dst[1] == OperandType::mask) set_mask_result(d, kVcc);
  if (op.src[3] == OperandType::mask) set_mask_source(d, kVcc);
  finish(d);
}

void decode_vopc(Decoding& d) {
  if (!d.begin(Format::vopc, d.field(0, 17, 8), 1)) return;
  const OpInfo& op = *d.info.op;
  set_short_source0(d, d.field(0, 0, 9));
  d.info.src[1] = short_vgpr(d, op.src[1], d.field(0, 9, 8));
  apply_dpp_modifiers(d);
  set_mask_result(d, op.has(kWritesExec) ? kExec : kVcc);
  finish(d);
}

void decode_vop3(Decoding& d) {
  if (d.take(2)) d.set_op(find_vop3(d.target, d.field(0, 16, 10)));
  if (!d.valid) return;
  const OpInfo& op = *d.info.op;
  const u32 codes[3] = {d.field(1, 0, 9), d.field(1, 9, 9), d.field(1, 18, 9)};
  // With a second scalar result the bits of op_sel and of the absolute values hold its number.
  const bool second_result = op.dst[1] == OperandType::mask;
  const u32 absolute = second_result ? 0 : d.field(0, 8, 3);
  const u32 negate = d.field(1, 29, 3);
  d.info.op_sel = static_cast<u8>(second_result ? 0 : d.field(0, 11, 4));
  d.info.clamp = d.field(0, 15, 1);
  d.info.omod = static_cast<u8>(d.field(1, 27, 2));

  for (int k = 0; k < 3; ++k) {
    const OperandType type = op.src[k];
    if (type == OperandType::none || (k == 2 && op.has(kAccumulates))) continue;
    Operand& operand = d.info.src[k] = d.source(type, k == 0 ? take_dpp(d, codes[0]) : codes[k]);
    if (is_half(type)) operand.high = d.info.op_sel >> k & 1;
    if (is_float(type)) {
      operand.absolute = absolute >> k & 1;
      operand.negate = negate >> k & 1;
    }
  }
  const u32 dst = d.field(0, 0, 8);
  if (op.dst[0] == OperandType::mask) {
    set_mask_result(d, op.has(kWritesExec) ? u32{kExec} : dst);
  } else if (op.dst[0] == OperandType::s32) {
    set_result(d, d.scalar(OperandType::s32, dst));
  } else if (op.dst[0] != OperandType::none) {
    Operand result = d.vgpr(op.dst[0], dst);
    if (is_half(op.dst[0])) result.high = d.info.op_sel >> 3 & 1;
    set_result(d, result);
  }
  if (second_result) set_mask_result(d, d.field(0, 8, 7));
  if (op.src[3] == OperandType::mask) set_mask_source(d, codes[2]);
  finish(d);
}

void decode_vop3p(Decoding& d) {
  if (!d.begin(Format::vop3p, d.field(0, 16, 7), 2)) return;
  const OpInfo& op = *d.info.op;
  d.info.op_sel = static_cast<u8>(d.field(0, 11, 3));
  d.info.op_sel_hi = static_cast<u8>(d.field(1, 27, 2) | d.field(0, 14, 1) << 2);
  d.info.neg_lo = static_cast<u8>(d.field(1, 29, 3));
  d.info.neg_hi = static_cast<u8>(d.field(0, 8, 3));
  d.info.clamp = d.field(0, 15, 1);
  for (int k = 0; k < 3; ++k) {
    OperandType type = op.src[k];
    if (type == OperandType::none) continue;
    const bool single = op.has(kMix) && !(d.info.op_sel_hi >> k & 1);
    if (single) type = OperandType::f32;
    const u32 code = d.field(1, 9 * k, 9);
    if (op.cls == OpClass::wmma && code < kCodeVgpr && (k < 2 || code < 128)) d.valid = false;  // matrices are in VGPRs
    Operand& operand = d.info.src[k] = d.source(type, k == 0 ? take_dpp(d, code) : code);
    if (op.has(kMix)) {
      operand.high = !single && (d.info.op_sel >> k & 1);
      operand.negate = d.info.neg_lo >> k & 1;
      operand.absolute = d.info.neg_hi >> k & 1;
    }
  }
  set_result(d, d.vgpr(op.dst[0], d.field(0, 0, 8)));
  finish(d);
}

namespace {

// One half of a pair. `d` is the whole instruction; the half has an `Inst` and an `InstInfo` of its own.
void decode_half(Decoding& d, Decoding& half, u32 opcode, u32 first, u32 second, u32 dst) {
  half.set_op(find_op(d.target, Format::vopd, opcode));
  if (!half.valid) return;
  const OpInfo& op = *half.info.op;
  half.info.dst[0] = half.vgpr(op.dst[0], dst);
  half.inst.dst = static_cast<u16>(dst);
  half.info.src[0] = half.source(op.src[0], first);
  if (op.has(kLiteralMiddle)) {
    half.info.src[1] = half.source(op.src[1], kCodeLiteral);
    half.info.src[2] = half.vgpr(op.src[2], second);
  } else {
    if (op.src[1] != OperandType::none) half.info.src[1] = half.vgpr(op.src[1], second);
    if (op.has(kHasLiteral)) half.info.src[2] = half.source(op.src[2], kCodeLiteral);
  }
  if (op.src[3] == OperandType::mask) set_mask_source(half, kVcc);
  finish(half);
}

}  // namespace

void decode_vopd(Decoding& d) {
  if (!d.begin(Format::vopd, kPairOpcode, 2)) return;
  d.program.pairs.push_back(std::make_unique<Pair>());
  Pair& pair = *d.program.pairs.back();
  pair.x = pair.y = d.inst;
  pair.x.info = &pair.x_info;
  pair.y.info = &pair.y_info;
  pair.x_info.address = pair.y_info.address = d.info.address;
  const u32 x_dst = d.field(1, 24, 8);
  const u32 y_dst = d.field(1, 17, 7) << 1 | (~x_dst & 1);

  const auto half = [&](Inst& inst, InstInfo& info) {
    return Decoding{d.target, d.text, d.left, d.program, d.pool, inst, info, d.words, d.literal_taken, d.literal, true};
  };
  Decoding x = half(pair.x, pair.x_info);
  decode_half(d, x, d.field(0, 22, 4), d.field(0, 0, 9), d.field(0, 9, 8), x_dst);
  d.words = x.words;
  d.literal_taken = x.literal_taken;
  d.literal = x.literal;
  Decoding y = half(pair.y, pair.y_info);
  decode_half(d, y, d.field(0, 17, 5), d.field(1, 0, 9), d.field(1, 9, 8), y_dst);
  d.words = y.words;
  d.valid = x.valid && y.valid;
  if (!d.valid) {
    d.program.pairs.pop_back();
    return;
  }
  d.info.pair = &pair;
  pair.x.words = pair.y.words = static_cast<u8>(d.words);
  if (pair.x.body == trap_unserved || pair.y.body == trap_unserved) {
    d.inst.fn = d.inst.body = trap_unserved;
    return;
  }
  pair.x.dst = kPairRow;
  choose_pair(d.inst, pair);
}

}  // namespace rdna
