#include "isa/decoding.hpp"

#include <algorithm>

namespace rdna {

i32 ConstantPool::vector(u64 value, int dwords) {
  const int kind = dwords > 2 ? 2 : dwords - 1;
  const auto [entry, added] = vectors_[kind].try_emplace(value, offset_of_row(rows_.size()));
  if (added) {
    for (int d = 0; d < (kind == 2 ? 4 : dwords); ++d) {
      ConstantRow row;
      std::fill(std::begin(row.lanes), std::end(row.lanes), d < 2 ? static_cast<u32>(value >> (32 * d)) : 0u);
      rows_.push_back(row);
    }
  }
  return entry->second;
}

i32 ConstantPool::scalar(u64 value) {
  const auto [entry, added] = scalars_.try_emplace(value, offset_of_row(rows_.size()));
  if (added) {
    ConstantRow row;
    for (int d = 0; d < kLanes; ++d) row.lanes[d] = static_cast<u32>(value >> (d % 2 * 32));
    rows_.push_back(row);
  }
  return entry->second;
}

u32 Decoding::take_literal() {
  if (!literal_taken && take(1)) {
    literal_taken = true;
    literal = text[words - 1];
  }
  return literal;
}

bool Decoding::begin(Format format, u32 opcode, u32 count) {
  if (take(count)) set_op(find_op(target, format, opcode));
  return valid;
}

void Decoding::set_op(const OpInfo* op) {
  valid = valid && op != nullptr;
  if (!valid) return;
  info.op = op;
  inst.op = row_of(op);
  inst.body = body_of_row(op);
  inst.fn = inst.body;
  if (op->has(kEnds)) inst.flags |= kEndsProgram;
}

Operand Decoding::vgpr(OperandType type, u32 number) {
  Operand operand;
  operand.kind = OperandKind::vgpr;
  operand.dwords = dwords_of(type);
  operand.bytes = bytes_of(type);
  operand.high = in_high_half(type);
  operand.reg = static_cast<u16>(number);
  if (number + operand.dwords > 256) valid = false;
  return operand;
}

Operand Decoding::scalar(OperandType type, u32 code) {
  Operand operand;
  operand.kind = OperandKind::sgpr;
  operand.dwords = dwords_of(type);
  operand.bytes = bytes_of(type);
  if (operand.dwords > 1) {
    if (code == kM0) valid = false;
    if (code < 128) code &= operand.dwords == 2 ? ~1u : ~3u;  // the device ignores the low bits of pairs and larger groups
  }
  operand.reg = static_cast<u16>(code);
  return operand;
}

Operand Decoding::source(OperandType type, u32 code) {
  if (code >= kCodeVgpr) return vgpr(type, code - kCodeVgpr);
  if ((code < 128 && code != kNull) || (code >= 235 && code <= 239) || (code >= 251 && code <= 253)) return scalar(type, code);
  Operand operand;
  operand.kind = OperandKind::constant;
  operand.dwords = dwords_of(type);
  operand.bytes = bytes_of(type);
  operand.reg = static_cast<u16>(code);
  if (code == kCodeLiteral) {
    operand.value = expand_literal(type, take_literal());
  } else if ((code >= 128 && code <= 208) || (code >= 240 && code <= 248)) {
    operand.value = expand_constant(type, code);
  } else if (code != kNull) {
    valid = false;
  }
  return operand;
}

i32 Decoding::vector_offset(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::vgpr: return operand.reg * static_cast<i32>(sizeof(u32x));
    case OperandKind::constant: return pool.vector(operand.value, std::max<int>(operand.dwords, 1));
    default: return scalar_offset(operand);
  }
}

i32 Decoding::scalar_offset(const Operand& operand) {
  if (operand.kind == OperandKind::sgpr) return static_cast<i32>(offsetof(Wave, s) + operand.reg * sizeof(u32));
  return pool.scalar(operand.value);
}

void Decoding::set_scalar_source(int k, u32 code) {
  info.src[k] = source(info.op->src[k], code);
  inst.src[k] = scalar_offset(info.src[k]);
  if (code == 251 || code == 252) inst.fn = read_status;
}

void Decoding::set_scalar_result(u32 code) {
  info.dst[0] = scalar(info.op->dst[0], code);
  inst.dst = info.dst[0].reg;
  if (inst.dst == kNull && info.dst[0].dwords > 1) inst.dst = kNullResult;
}

}  // namespace rdna
