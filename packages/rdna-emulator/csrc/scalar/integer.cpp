// SALU integer operations: SOP1, SOP2 and the SOPK forms that compute.
#include <bit>

#include "core/machine.hpp"

namespace rdna {
namespace {

enum class Scc : bool { kept, not_zero };

template <auto F, Scc kScc = Scc::kept>
void unary32(Wave& w, const Inst& i) {
  const u32 result = F(w.scalar_source(i, 0));
  w.write_scalar(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

template <auto F, Scc kScc = Scc::kept>
void unary64(Wave& w, const Inst& i) {
  const u64 result = F(w.scalar_source64(i, 0));
  w.write_scalar64(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

template <auto F, Scc kScc = Scc::kept>
void unary64_to_32(Wave& w, const Inst& i) {
  const u32 result = F(w.scalar_source64(i, 0));
  w.write_scalar(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

template <auto F, Scc kScc = Scc::kept>
void binary32(Wave& w, const Inst& i) {
  const u32 result = F(w.scalar_source(i, 0), w.scalar_source(i, 1));
  w.write_scalar(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

template <auto F, Scc kScc = Scc::kept>
void binary64(Wave& w, const Inst& i) {
  const u64 result = F(w.scalar_source64(i, 0), w.scalar_source64(i, 1));
  w.write_scalar64(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

// 64-bit value and 32-bit control (shifts, fields).
template <auto F, Scc kScc = Scc::kept>
void binary64_32(Wave& w, const Inst& i) {
  const u64 result = F(w.scalar_source64(i, 0), w.scalar_source(i, 1));
  w.write_scalar64(i.dst, result);
  if constexpr (kScc == Scc::not_zero) w.set_scc(result != 0);
}

void add_u32(Wave& w, const Inst& i) {
  const u64 sum = u64{w.scalar_source(i, 0)} + w.scalar_source(i, 1);
  w.write_scalar(i.dst, static_cast<u32>(sum));
  w.set_scc(sum >> 32);
}

void sub_u32(Wave& w, const Inst& i) {
  const u32 a = w.scalar_source(i, 0), b = w.scalar_source(i, 1);
  w.write_scalar(i.dst, a - b);
  w.set_scc(b > a);
}

void addc_u32(Wave& w, const Inst& i) {
  const u64 sum = u64{w.scalar_source(i, 0)} + w.scalar_source(i, 1) + w.scc();
  w.write_scalar(i.dst, static_cast<u32>(sum));
  w.set_scc(sum >> 32);
}

void subb_u32(Wave& w, const Inst& i) {
  const u64 a = w.scalar_source(i, 0), b = u64{w.scalar_source(i, 1)} + w.scc();
  w.write_scalar(i.dst, static_cast<u32>(a - b));
  w.set_scc(b > a);
}

void add_i32(Wave& w, const Inst& i) {
  i32 sum;
  const bool overflow = __builtin_add_overflow(static_cast<i32>(w.scalar_source(i, 0)),
                                               static_cast<i32>(w.scalar_source(i, 1)), &sum);
  w.write_scalar(i.dst, static_cast<u32>(sum));
  w.set_scc(overflow);
}

void sub_i32(Wave& w, const Inst& i) {
  i32 difference;
  const bool overflow = __builtin_sub_overflow(static_cast<i32>(w.scalar_source(i, 0)),
                                               static_cast<i32>(w.scalar_source(i, 1)), &difference);
  w.write_scalar(i.dst, static_cast<u32>(difference));
  w.set_scc(overflow);
}

template <int kShift>
void lshl_add_u32(Wave& w, const Inst& i) {
  const u64 sum = (u64{w.scalar_source(i, 0)} << kShift) + w.scalar_source(i, 1);
  w.write_scalar(i.dst, static_cast<u32>(sum));
  w.set_scc(sum >> 32);
}

template <class T, bool kMaximum>
void pick(Wave& w, const Inst& i) {
  const T a = static_cast<T>(w.scalar_source(i, 0)), b = static_cast<T>(w.scalar_source(i, 1));
  const bool first = kMaximum ? a >= b : a < b;
  w.write_scalar(i.dst, static_cast<u32>(first ? a : b));
  w.set_scc(first);
}

void cselect_b32(Wave& w, const Inst& i) { w.write_scalar(i.dst, w.scalar_source(i, w.scc() ? 0 : 1)); }
void cselect_b64(Wave& w, const Inst& i) { w.write_scalar64(i.dst, w.scalar_source64(i, w.scc() ? 0 : 1)); }

void cmov_b32(Wave& w, const Inst& i) {
  if (w.scc()) w.write_scalar(i.dst, w.scalar_source(i, 0));
}
void cmov_b64(Wave& w, const Inst& i) {
  if (w.scc()) w.write_scalar64(i.dst, w.scalar_source64(i, 0));
}

template <class T>
T field(T value, u32 control, bool with_sign) {
  constexpr u32 kBits = sizeof(T) * 8;
  const u32 offset = control & (kBits - 1);
  const u32 width = control >> 16 & 0x7f;
  using Signed = std::make_signed_t<T>;
  const T shifted = with_sign ? static_cast<T>(static_cast<Signed>(value) >> offset) : value >> offset;
  if (width == 0) return 0;
  if (width >= kBits) return shifted;
  const T cut = shifted << (kBits - width);
  return with_sign ? static_cast<T>(static_cast<Signed>(cut) >> (kBits - width)) : cut >> (kBits - width);
}

constexpr auto kBfeU32 = [](u32 a, u32 b) { return field<u32>(a, b, false); };
constexpr auto kBfeI32 = [](u32 a, u32 b) { return field<u32>(a, b, true); };
constexpr auto kBfeU64 = [](u64 a, u32 b) { return field<u64>(a, b, false); };
constexpr auto kBfeI64 = [](u64 a, u32 b) { return field<u64>(a, b, true); };

constexpr auto kAbsdiff = [](u32 a, u32 b) {
  const u32 difference = a - b;
  return static_cast<i32>(difference) < 0 ? 0u - difference : difference;
};

// Search from the top for the first bit that differs from the sign; -1 if none does.
template <class T>
u32 leading_sign_bits(T value) {
  using Signed = std::make_signed_t<T>;
  const T differing = static_cast<T>(static_cast<Signed>(value) >> (sizeof(T) * 8 - 1)) ^ value;
  return differing ? static_cast<u32>(std::countl_zero(differing)) : ~0u;
}

template <class T>
T quads(T value) {  // one bit for each group of four
  T result = 0;
  for (u32 k = 0; k < sizeof(T) * 2; ++k) result |= static_cast<T>((value >> (4 * k) & 15) != 0) << k;
  return result;
}

template <class T>
T whole_quads(T value) {
  T result = 0;
  for (u32 k = 0; k < sizeof(T) * 2; ++k) result |= static_cast<T>((value >> (4 * k) & 15) ? 15 : 0) << (4 * k);
  return result;
}

u64 replicate_bits(u32 value) {
  u64 result = 0;
  for (u32 k = 0; k < 32; ++k) result |= static_cast<u64>(value >> k & 1 ? 3 : 0) << (2 * k);
  return result;
}

void bitreplicate(Wave& w, const Inst& i) { w.write_scalar64(i.dst, replicate_bits(w.scalar_source(i, 0))); }

template <bool kSet>
void bitset_b32(Wave& w, const Inst& i) {
  const u32 bit = 1u << (w.scalar_source(i, 0) & 31);
  w.write_scalar(i.dst, kSet ? w.s[i.dst] | bit : w.s[i.dst] & ~bit);
}
template <bool kSet>
void bitset_b64(Wave& w, const Inst& i) {
  const u32 position = w.scalar_source(i, 0) & 63;
  const u16 half = i.dst + (position >> 5);
  const u32 bit = 1u << (position & 31);
  w.write_scalar(half, kSet ? w.s[half] | bit : w.s[half] & ~bit);
}

u32 relative(Wave& w, const Inst& i, u32 base, u32 offset, u32 registers) {
  const u64 number = u64{base} + offset;
  if (number + registers > kVcc + 2) {
    trap(w, i, Fault::unsupported, -1, "M0 = " + std::to_string(w.s[kM0]) + " selects a scalar register past s105");
  }
  return static_cast<u32>(number);
}

void movrels_b32(Wave& w, const Inst& i) { w.write_scalar(i.dst, w.s[relative(w, i, i.info->src[0].reg, w.s[kM0], 1)]); }
void movrels_b64(Wave& w, const Inst& i) {
  const u32 from = relative(w, i, i.info->src[0].reg, w.s[kM0], 2);
  w.write_scalar64(i.dst, w.s[from] | u64{w.s[from + 1]} << 32);
}
void movreld_b32(Wave& w, const Inst& i) { w.s[relative(w, i, i.dst, w.s[kM0], 1)] = w.scalar_source(i, 0); }
void movreld_b64(Wave& w, const Inst& i) {
  w.write_scalar64(static_cast<u16>(relative(w, i, i.dst, w.s[kM0], 2)), w.scalar_source64(i, 0));
}
void movrelsd_2_b32(Wave& w, const Inst& i) {
  const u32 from = relative(w, i, i.info->src[0].reg, w.s[kM0] & 0x3ff, 1);
  w.s[relative(w, i, i.dst, w.s[kM0] >> 16 & 0x3ff, 1)] = w.s[from];
}

void movk(Wave& w, const Inst& i) { w.write_scalar(i.dst, i.imm); }
void cmovk(Wave& w, const Inst& i) {
  if (w.scc()) w.write_scalar(i.dst, i.imm);
}
void addk(Wave& w, const Inst& i) {
  i32 sum;
  const bool overflow = __builtin_add_overflow(static_cast<i32>(w.s[i.dst]), static_cast<i32>(i.imm), &sum);
  w.write_scalar(i.dst, static_cast<u32>(sum));
  w.set_scc(overflow);
}
void mulk(Wave& w, const Inst& i) { w.write_scalar(i.dst, w.s[i.dst] * i.imm); }

constexpr Scc kNotZero = Scc::not_zero;

const Registration kMoves({
    {"s_mov_b32", unary32<[](u32 a) { return a; }>},
    {"s_mov_b64", unary64<[](u64 a) { return a; }>},
    {"s_cmov_b32", cmov_b32},
    {"s_cmov_b64", cmov_b64},
    {"s_cselect_b32", cselect_b32},
    {"s_cselect_b64", cselect_b64},
    {"s_movk_i32", movk},
    {"s_cmovk_i32", cmovk},
    {"s_movrels_b32", movrels_b32},
    {"s_movrels_b64", movrels_b64},
    {"s_movreld_b32", movreld_b32},
    {"s_movreld_b64", movreld_b64},
    {"s_movrelsd_2_b32", movrelsd_2_b32},
    {"s_pack_ll_b32_b16", binary32<[](u32 a, u32 b) { return (a & 0xffff) | b << 16; }>},
    {"s_pack_lh_b32_b16", binary32<[](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000u); }>},
    {"s_pack_hh_b32_b16", binary32<[](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000u); }>},
    {"s_pack_hl_b32_b16", binary32<[](u32 a, u32 b) { return a >> 16 | b << 16; }>},
    {"s_sext_i32_i8", unary32<[](u32 a) { return static_cast<u32>(static_cast<i8>(a)); }>},
    {"s_sext_i32_i16", unary32<[](u32 a) { return static_cast<u32>(static_cast<i16>(a)); }>},
});

const Registration kArithmetic({
    {"s_add_u32", add_u32},
    {"s_sub_u32", sub_u32},
    {"s_addc_u32", addc_u32},
    {"s_subb_u32", subb_u32},
    {"s_add_i32", add_i32},
    {"s_sub_i32", sub_i32},
    {"s_addk_i32", addk},
    {"s_mulk_i32", mulk},
    {"s_absdiff_i32", binary32<kAbsdiff, kNotZero>},
    {"s_abs_i32", unary32<[](u32 a) { return static_cast<i32>(a) < 0 ? 0u - a : a; }, kNotZero>},
    {"s_lshl1_add_u32", lshl_add_u32<1>},
    {"s_lshl2_add_u32", lshl_add_u32<2>},
    {"s_lshl3_add_u32", lshl_add_u32<3>},
    {"s_lshl4_add_u32", lshl_add_u32<4>},
    {"s_min_i32", pick<i32, false>},
    {"s_min_u32", pick<u32, false>},
    {"s_max_i32", pick<i32, true>},
    {"s_max_u32", pick<u32, true>},
    {"s_mul_i32", binary32<[](u32 a, u32 b) { return a * b; }>},
    {"s_mul_hi_u32", binary32<[](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }>},
    {"s_mul_hi_i32", binary32<[](u32 a, u32 b) {
       return static_cast<u32>(static_cast<i64>(static_cast<i32>(a)) * static_cast<i32>(b) >> 32);
     }>},
});

const Registration kBits({
    {"s_and_b32", binary32<[](u32 a, u32 b) { return a & b; }, kNotZero>},
    {"s_and_b64", binary64<[](u64 a, u64 b) { return a & b; }, kNotZero>},
    {"s_or_b32", binary32<[](u32 a, u32 b) { return a | b; }, kNotZero>},
    {"s_or_b64", binary64<[](u64 a, u64 b) { return a | b; }, kNotZero>},
    {"s_xor_b32", binary32<[](u32 a, u32 b) { return a ^ b; }, kNotZero>},
    {"s_xor_b64", binary64<[](u64 a, u64 b) { return a ^ b; }, kNotZero>},
    {"s_nand_b32", binary32<[](u32 a, u32 b) { return ~(a & b); }, kNotZero>},
    {"s_nand_b64", binary64<[](u64 a, u64 b) { return ~(a & b); }, kNotZero>},
    {"s_nor_b32", binary32<[](u32 a, u32 b) { return ~(a | b); }, kNotZero>},
    {"s_nor_b64", binary64<[](u64 a, u64 b) { return ~(a | b); }, kNotZero>},
    {"s_xnor_b32", binary32<[](u32 a, u32 b) { return ~(a ^ b); }, kNotZero>},
    {"s_xnor_b64", binary64<[](u64 a, u64 b) { return ~(a ^ b); }, kNotZero>},
    {"s_and_not1_b32", binary32<[](u32 a, u32 b) { return a & ~b; }, kNotZero>},
    {"s_and_not1_b64", binary64<[](u64 a, u64 b) { return a & ~b; }, kNotZero>},
    {"s_or_not1_b32", binary32<[](u32 a, u32 b) { return a | ~b; }, kNotZero>},
    {"s_or_not1_b64", binary64<[](u64 a, u64 b) { return a | ~b; }, kNotZero>},
    {"s_not_b32", unary32<[](u32 a) { return ~a; }, kNotZero>},
    {"s_not_b64", unary64<[](u64 a) { return ~a; }, kNotZero>},
    {"s_lshl_b32", binary32<[](u32 a, u32 b) { return a << (b & 31); }, kNotZero>},
    {"s_lshl_b64", binary64_32<[](u64 a, u32 b) { return a << (b & 63); }, kNotZero>},
    {"s_lshr_b32", binary32<[](u32 a, u32 b) { return a >> (b & 31); }, kNotZero>},
    {"s_lshr_b64", binary64_32<[](u64 a, u32 b) { return a >> (b & 63); }, kNotZero>},
    {"s_ashr_i32", binary32<[](u32 a, u32 b) { return static_cast<u32>(static_cast<i32>(a) >> (b & 31)); }, kNotZero>},
    {"s_ashr_i64",
     binary64_32<[](u64 a, u32 b) { return static_cast<u64>(static_cast<i64>(a) >> (b & 63)); }, kNotZero>},
    {"s_bfe_u32", binary32<kBfeU32, kNotZero>},
    {"s_bfe_i32", binary32<kBfeI32, kNotZero>},
    {"s_bfe_u64", binary64_32<kBfeU64, kNotZero>},
    {"s_bfe_i64", binary64_32<kBfeI64, kNotZero>},
    {"s_bfm_b32", binary32<[](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }>},
    {"s_bfm_b64", [](Wave& w, const Inst& i) {
       const u32 width = w.scalar_source(i, 0) & 63, offset = w.scalar_source(i, 1) & 63;
       w.write_scalar64(i.dst, ((u64{1} << width) - 1) << offset);
     }},
    {"s_brev_b32", unary32<[](u32 a) { return __builtin_bitreverse32(a); }>},
    {"s_brev_b64", unary64<[](u64 a) { return __builtin_bitreverse64(a); }>},
    {"s_ctz_i32_b32", unary32<[](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~0u; }>},
    {"s_ctz_i32_b64", unary64_to_32<[](u64 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~0u; }>},
    {"s_clz_i32_u32", unary32<[](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~0u; }>},
    {"s_clz_i32_u64", unary64_to_32<[](u64 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~0u; }>},
    {"s_cls_i32", unary32<leading_sign_bits<u32>>},
    {"s_cls_i32_i64", unary64_to_32<leading_sign_bits<u64>>},
    {"s_bitset0_b32", bitset_b32<false>},
    {"s_bitset0_b64", bitset_b64<false>},
    {"s_bitset1_b32", bitset_b32<true>},
    {"s_bitset1_b64", bitset_b64<true>},
    {"s_bitreplicate_b64_b32", bitreplicate},
    {"s_bcnt0_i32_b32", unary32<[](u32 a) { return static_cast<u32>(std::popcount(~a)); }, kNotZero>},
    {"s_bcnt0_i32_b64", unary64_to_32<[](u64 a) { return static_cast<u32>(std::popcount(~a)); }, kNotZero>},
    {"s_bcnt1_i32_b32", unary32<[](u32 a) { return static_cast<u32>(std::popcount(a)); }, kNotZero>},
    {"s_bcnt1_i32_b64", unary64_to_32<[](u64 a) { return static_cast<u32>(std::popcount(a)); }, kNotZero>},
    {"s_quadmask_b32", unary32<quads<u32>, kNotZero>},
    {"s_quadmask_b64", unary64<quads<u64>, kNotZero>},
    {"s_wqm_b32", unary32<whole_quads<u32>, kNotZero>},
    {"s_wqm_b64", unary64<whole_quads<u64>, kNotZero>},
});

// Saves EXEC in the destination and combines it with the source; the `wrexec` forms return the new EXEC.
template <auto F, bool kNew = false>
void exec_b32(Wave& w, const Inst& i) {
  const u32 before = w.s[kExec];
  const u32 after = static_cast<u32>(F(w.scalar_source(i, 0), before));
  w.write_scalar(i.dst, kNew ? after : before);
  w.s[kExec] = after;
  w.set_scc(after != 0);
}
template <auto F, bool kNew = false>
void exec_b64(Wave& w, const Inst& i) {
  const u64 before = w.s[kExec] | u64{w.s[kExec + 1]} << 32;
  const u64 after = F(w.scalar_source64(i, 0), before);
  w.write_scalar64(i.dst, kNew ? after : before);
  w.write_scalar64(kExec, after);
  w.set_scc(after != 0);
}

constexpr auto kAnd = [](u64 a, u64 e) { return a & e; };
constexpr auto kOr = [](u64 a, u64 e) { return a | e; };
constexpr auto kXor = [](u64 a, u64 e) { return a ^ e; };
constexpr auto kNand = [](u64 a, u64 e) { return ~(a & e); };
constexpr auto kNor = [](u64 a, u64 e) { return ~(a | e); };
constexpr auto kXnor = [](u64 a, u64 e) { return ~(a ^ e); };
constexpr auto kAndNot0 = [](u64 a, u64 e) { return ~a & e; };
constexpr auto kOrNot0 = [](u64 a, u64 e) { return ~a | e; };
constexpr auto kAndNot1 = [](u64 a, u64 e) { return a & ~e; };
constexpr auto kOrNot1 = [](u64 a, u64 e) { return a | ~e; };

const Registration kExecMasks({
    {"s_and_saveexec_b32", exec_b32<kAnd>},
    {"s_and_saveexec_b64", exec_b64<kAnd>},
    {"s_or_saveexec_b32", exec_b32<kOr>},
    {"s_or_saveexec_b64", exec_b64<kOr>},
    {"s_xor_saveexec_b32", exec_b32<kXor>},
    {"s_xor_saveexec_b64", exec_b64<kXor>},
    {"s_nand_saveexec_b32", exec_b32<kNand>},
    {"s_nand_saveexec_b64", exec_b64<kNand>},
    {"s_nor_saveexec_b32", exec_b32<kNor>},
    {"s_nor_saveexec_b64", exec_b64<kNor>},
    {"s_xnor_saveexec_b32", exec_b32<kXnor>},
    {"s_xnor_saveexec_b64", exec_b64<kXnor>},
    {"s_and_not0_saveexec_b32", exec_b32<kAndNot0>},
    {"s_and_not0_saveexec_b64", exec_b64<kAndNot0>},
    {"s_or_not0_saveexec_b32", exec_b32<kOrNot0>},
    {"s_or_not0_saveexec_b64", exec_b64<kOrNot0>},
    {"s_and_not1_saveexec_b32", exec_b32<kAndNot1>},
    {"s_and_not1_saveexec_b64", exec_b64<kAndNot1>},
    {"s_or_not1_saveexec_b32", exec_b32<kOrNot1>},
    {"s_or_not1_saveexec_b64", exec_b64<kOrNot1>},
    {"s_and_not0_wrexec_b32", exec_b32<kAndNot0, true>},
    {"s_and_not0_wrexec_b64", exec_b64<kAndNot0, true>},
    {"s_and_not1_wrexec_b32", exec_b32<kAndNot1, true>},
    {"s_and_not1_wrexec_b64", exec_b64<kAndNot1, true>},
});

}  // namespace
}  // namespace rdna
