#include <bit>

#include "isa/op.hpp"

namespace rdna {
namespace {

enum class Constants : u8 { integer, half, brain, single, whole };  // how a floating inline constant is written down

struct Traits {
  u8 dwords;
  u8 bytes;
  bool high;
  bool floating;
  Constants constants;
};

constexpr Traits traits(OperandType type) {
  using enum OperandType;
  switch (type) {
    case none: return {0, 0, false, false, Constants::integer};
    case b8: return {1, 1, false, false, Constants::single};
    case b16: return {1, 2, false, false, Constants::single};
    case b16_sign: return {1, 2, false, true, Constants::single};
    case b64: case i64: return {2, 4, false, false, Constants::whole};
    case b96: return {3, 4, false, false, Constants::single};
    case b128: return {4, 4, false, false, Constants::single};
    case b256: return {8, 4, false, false, Constants::single};
    case b512: return {16, 4, false, false, Constants::single};
    case f16: return {1, 2, false, true, Constants::half};
    case bf16: return {1, 2, false, true, Constants::brain};
    case f32: return {1, 4, false, true, Constants::single};
    case f64: return {2, 4, false, true, Constants::whole};
    case b8_hi: return {1, 1, true, false, Constants::single};
    case b16_hi: return {1, 2, true, false, Constants::single};
    case f16_hi: return {1, 2, true, true, Constants::half};
    case pk_f16: return {1, 4, false, true, Constants::half};
    case pk_bf16: return {1, 4, false, true, Constants::brain};
    case x8_f16: return {8, 4, false, true, Constants::half};
    case x8_bf16: return {8, 4, false, true, Constants::brain};
    case x8_f32: return {8, 4, false, true, Constants::single};
    case x8_b32: return {8, 4, false, false, Constants::single};
    case b32: case pk_b16: case s32: case mask: case message: break;
  }
  return {1, 4, false, false, Constants::single};
}

// Operand numbers 240 to 248 as f64, f32 and f16; bfloat16 is the upper half of f32.
constexpr double kFloats[9] = {0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532};
constexpr u16 kHalves[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};

}  // namespace

u8 dwords_of(OperandType type) { return traits(type).dwords; }
u8 bytes_of(OperandType type) { return traits(type).bytes; }
bool in_high_half(OperandType type) { return traits(type).high; }
bool is_float(OperandType type) { return traits(type).floating; }

u64 expand_constant(OperandType type, u32 code) {
  const bool wide = traits(type).constants == Constants::whole;
  if (code < 240) {
    const i64 value = code <= 192 ? i64{code} - 128 : 192 - i64{code};
    return wide ? static_cast<u64>(value) : static_cast<u32>(value);
  }
  const double value = kFloats[code - 240];
  switch (traits(type).constants) {
    case Constants::whole: return std::bit_cast<u64>(value);
    case Constants::half: return kHalves[code - 240];
    case Constants::brain: return std::bit_cast<u32>(static_cast<float>(value)) >> 16;
    default: return std::bit_cast<u32>(static_cast<float>(value));
  }
}

u64 expand_literal(OperandType type, u32 literal) {
  if (type == OperandType::f64) return u64{literal} << 32;
  if (type == OperandType::i64) return static_cast<u64>(i64{static_cast<i32>(literal)});
  return bytes_of(type) == 2 ? literal & 0xffff : literal;
}

}  // namespace rdna
