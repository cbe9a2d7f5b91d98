// Prologues: scalars, modifiers, halves and DPP of vector sources, and VOPD pairs.
#include "valu/prologue.hpp"

#include <string>
#include <string_view>

#include "valu/lanes.hpp"

namespace rdna {
namespace {

constexpr i32 kRowBytes = 4 * kLanes;
constexpr i32 prepared_row(int k) { return (kSourceRows + 2 * k) * kRowBytes; }

u32 scalar_value(const Wave& w, u16 number) {
  if (number == 251) return w.s[kVcc] == 0;
  if (number == 252) return w.s[kExec] == 0;
  return w.s[number];
}

RDNA_INLINE void splat(Wave& w, const Operand& operand, int k) {
  w.row(kSourceRows + 2 * k) = u32x(scalar_value(w, operand.reg));
  if (operand.dwords == 2) w.row(kSourceRows + 2 * k + 1) = u32x(w.s[operand.reg + 1]);
}

// One 32-bit scalar: the usual case.
template <int k>
void splat_source(Wave& w, const Inst& i) {
  w.row(kSourceRows + 2 * k) = u32x(scalar_value(w, i.info->src[k].reg));
  i.body(w, i);
}

RDNA_INLINE u32x first_row(const Wave& w, const Operand& operand) {
  if (operand.kind == OperandKind::vgpr) return *reinterpret_cast<const u32x*>(w.v[operand.reg]);
  if (operand.kind == OperandKind::sgpr) return u32x(scalar_value(w, operand.reg));
  return u32x(static_cast<u32>(operand.value));
}

RDNA_INLINE u32x second_row(const Wave& w, const Operand& operand) {
  if (operand.kind == OperandKind::vgpr) return *reinterpret_cast<const u32x*>(w.v[operand.reg + 1]);
  if (operand.kind == OperandKind::sgpr) return u32x(w.s[operand.reg + 1]);
  return u32x(static_cast<u32>(operand.value >> 32));
}

// Lane l of an instruction with DPP reads lane `source[l]`, where `valid` says that there is such a lane.
struct LaneMap {
  u32x source;
  u32 valid;
};

RDNA_INLINE LaneMap dpp16_map(Wave& w, const Inst& i, u32 control) {
  const u32x lane = kLaneIndex, in_row = lane & 15u, row = lane & 16u;
  const u32 n = control & 15u;
  u32x source = lane;
  u32 valid = ~0u;
  switch (control >> 4) {
    case 0x10:  // row_shl
      source = row | ((in_row + n) & 15u);
      valid = lane_bits(in_row + n < 16u);
      break;
    case 0x11:  // row_shr
      source = row | ((in_row - n) & 15u);
      valid = lane_bits(in_row >= n);
      break;
    case 0x12:  // row_ror
      source = row | ((in_row - n) & 15u);
      break;
    case 0x14:  // row_mirror, row_half_mirror
      source = lane ^ (n == 0 ? 15u : 7u);
      break;
    case 0x15:  // row_share
      source = row | n;
      break;
    case 0x16:  // row_xmask
      source = lane ^ n;
      break;
    default:
      if (control < 0x100) {  // quad_perm
        source = (lane & ~3u) | ((u32x(control) >> ((lane & 3u) * 2u)) & 3u);
      } else {
        trap(w, i, Fault::unsupported, -1, "DPP control " + std::to_string(control) + " does not exist on gfx11");
      }
  }
  return {source, valid};
}

RDNA_INLINE u32x dpp8_source(u32 control) {
  return (kLaneIndex & ~7u) | ((u32x(control) >> ((kLaneIndex & 7u) * 3u)) & 7u);
}

// The first source as DPP moves it, and the lanes that take part.
struct Moved {
  u32x value;
  u32 lanes;
};

RDNA_INLINE Moved moved(Wave& w, const Inst& i, const InstInfo& info) {
  const u32x from = first_row(w, info.src[0]);
  const DppControl& dpp = info.dpp;
  const u32 exec = w.exec();
  if (dpp.kind == DppControl::Kind::dpp8) {
    const u32x source = dpp8_source(dpp.control);
    u32x value = permute(from, source);
    if (!dpp.fetch_inactive && exec != ~0u) value = ((u32x(exec) >> source) & 1u) != 0u ? value : u32x(0u);
    return {value, ~0u};
  }
  const LaneMap map = dpp16_map(w, i, dpp.control);
  u32x value = permute(from, map.source);
  u32 valid = map.valid;
  if (!dpp.fetch_inactive && exec != ~0u) valid &= lane_bits((u32x(exec) >> map.source) & 1u);
  u32 lanes = ~0u;
  if (valid != ~0u) {
    if (dpp.bound_control) {
      value = lane_mask(valid) ? value : u32x(0u);
    } else {
      lanes = valid;
    }
  }
  if (dpp.row_mask != 0xf) lanes &= (dpp.row_mask & 1 ? 0xffffu : 0u) | (dpp.row_mask & 2 ? 0xffff0000u : 0u);
  if (dpp.bank_mask != 0xf) {
    u32 row = 0;
    for (int bank = 0; bank < 4; ++bank) row |= dpp.bank_mask >> bank & 1 ? 0xfu << 4 * bank : 0u;
    lanes &= row | row << 16;
  }
  return {value, lanes};
}

RDNA_INLINE void modify_plain(const Operand& operand, u32x& low, u32x& high) {
  if (operand.high) low >>= operand.bytes == 1 ? 8u : 16u;
  const u32 sign = operand.bytes == 2 ? 0x8000u : 0x80000000u;
  u32x& top = operand.dwords == 2 ? high : low;
  if (operand.absolute) top &= ~sign;
  if (operand.negate) top ^= sign;
}

RDNA_INLINE u32x packed_halves(const InstInfo& info, int k, u32x value) {
  const u32x low = info.op_sel >> k & 1 ? value >> 16 : value & 0xffffu;
  const u32x high = info.op_sel_hi >> k & 1 ? value & 0xffff0000u : value << 16;
  const u32 signs = (info.neg_lo >> k & 1 ? 0x8000u : 0u) | (info.neg_hi >> k & 1 ? 0x80000000u : 0u);
  return (low | high) ^ signs;
}

RDNA_INLINE u32x mix_operand(const InstInfo& info, int k, u32x value) {
  if (info.op_sel_hi >> k & 1) {
    const u32x half = info.op_sel >> k & 1 ? value >> 16 : value;
    value = bits<u32x>(convert<f32x>(bits<f16x>(convert<u16x>(half))));
  }
  if (info.neg_hi >> k & 1) value &= 0x7fffffffu;
  if (info.neg_lo >> k & 1) value ^= 0x80000000u;
  return value;
}

// NaN becomes 0: DX10_CLAMP is set.
template <class T>
RDNA_INLINE T clamped(T x) {
  x = x > T(0) ? x : T(0);
  return x < T(1) ? x : T(1);
}

template <SourceForm form>
RDNA_INLINE void clamp_result(Wave& w, const Inst& i) {
  u32x& low = w.row(i.dst);
  if constexpr (form == SourceForm::packed || form == SourceForm::whole) {
    w.write(i.dst, clamped(bits<f16h>(low)));
    return;
  }
  const Operand& result = i.info->dst[0];
  if (result.bytes == 2) {
    const u32x half = i.flags & kDestinationHigh ? low >> 16 : low;
    w.write16(i, clamped(bits<f16x>(convert<u16x>(half))));
  } else if (result.dwords == 2) {
    const u64x value = convert<u64x>(low) | convert<u64x>(w.row(i.dst + 1)) << 32;
    w.write64(i.dst, clamped(bits<f64x>(value)));
  } else {
    w.write(i.dst, clamped(bits<f32x>(low)));
  }
}

template <SourceForm form>
void prepare(Wave& w, const Inst& i) {
  const InstInfo& info = *i.info;
  const u32 exec = w.exec();
  for (int k = 0; k < 3; ++k) {
    if (i.src[k] != prepared_row(k)) continue;
    const Operand& operand = info.src[k];
    u32x low, high;
    if (k == 0 && info.dpp.kind != DppControl::Kind::none) {
      const Moved from = moved(w, i, info);
      low = from.value;
      w.s[kExec] = exec & from.lanes;
    } else {
      low = first_row(w, operand);
    }
    if (operand.dwords == 2) high = second_row(w, operand);
    if constexpr (form == SourceForm::plain) modify_plain(operand, low, high);
    if constexpr (form == SourceForm::packed) low = packed_halves(info, k, low);
    if constexpr (form == SourceForm::packed_dot) {
      low = k < 2 ? packed_halves(info, k, low) : low ^ (info.neg_lo & 4 ? 0x80000000u : 0u);
    }
    if constexpr (form == SourceForm::mix) low = mix_operand(info, k, low);
    w.row(kSourceRows + 2 * k) = low;
    if (operand.dwords == 2) w.row(kSourceRows + 2 * k + 1) = high;
  }
  i.body(w, i);
  if (i.flags & kClamp) clamp_result<form>(w, i);
  if (info.dpp.kind != DppControl::Kind::none && i.sdst != kExec) w.s[kExec] = exec;
}

// One f32 source with its sign changed or removed: the usual modifier.
template <int k>
void prepare_signed_source(Wave& w, const Inst& i) {
  const Operand& operand = i.info->src[k];
  u32x value = *reinterpret_cast<const u32x*>(w.v[operand.reg]);
  if (operand.absolute) value &= 0x7fffffffu;
  if (operand.negate) value ^= 0x80000000u;
  w.row(kSourceRows + 2 * k) = value;
  i.body(w, i);
}

[[noreturn]] void unsupported_modifier(Wave& w, const Inst& i) {
  trap(w, i, Fault::unsupported, -1,
       i.info->omod ? "the output modifier (omod) is not supported" : "clamp is not supported on this operation");
}

void run_independent_pair(Wave& w, const Inst& i) {
  const Pair& pair = *i.info->pair;
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
}

bool needs_preparation(SourceForm form, const InstInfo& info, int k) {
  const Operand& operand = info.src[k];
  if (k == 0 && info.dpp.kind != DppControl::Kind::none) return true;
  const u32 bit = 1u << k;
  const bool negated = (info.neg_lo | info.neg_hi) & bit;
  switch (form) {
    case SourceForm::plain: return operand.high || operand.negate || operand.absolute;
    case SourceForm::packed_dot:
      if (k == 2) return info.neg_lo & bit;
      [[fallthrough]];
    case SourceForm::packed: return info.op_sel & bit || !(info.op_sel_hi & bit) || negated;
    case SourceForm::mix: return info.op_sel_hi & bit || negated;
    default: return false;
  }
}

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool gives_float(std::string_view name) {
  if (starts_with(name, "v_cvt_")) return starts_with(name, "v_cvt_f");
  if (starts_with(name, "v_frexp_exp") || starts_with(name, "v_cmp") || starts_with(name, "v_cvt_pk")) return false;
  return ends_with(name, "_f16") || ends_with(name, "_f32") || ends_with(name, "_f64") ||
         ends_with(name, "_f32_bf16");
}

using Prologue = Body;

Prologue prologue_of(SourceForm form) {
  switch (form) {
    case SourceForm::packed: return prepare<SourceForm::packed>;
    case SourceForm::packed_dot: return prepare<SourceForm::packed_dot>;
    case SourceForm::mix: return prepare<SourceForm::mix>;
    case SourceForm::whole: return prepare<SourceForm::whole>;
    default: return prepare<SourceForm::plain>;
  }
}

constexpr Body kSplat[3] = {splat_source<0>, splat_source<1>, splat_source<2>};
constexpr Body kSigned[3] = {prepare_signed_source<0>, prepare_signed_source<1>, prepare_signed_source<2>};

// Whether the second half of a pair reads register `reg`.
bool reads(const InstInfo& info, u16 reg) {
  for (const Operand& operand : info.src) {
    if (operand.kind == OperandKind::vgpr && reg >= operand.reg && reg < operand.reg + operand.dwords) return true;
  }
  return false;
}

}  // namespace

SourceForm source_form_of(const char* mnemonic) {
  const std::string_view name = mnemonic;
  if (starts_with(name, "v_fma_mix")) return SourceForm::mix;
  if (starts_with(name, "v_pk_fmac") || starts_with(name, "v_dot4") || starts_with(name, "v_dot8") ||
      starts_with(name, "v_dot2acc") || starts_with(name, "v_dual_dot2acc") || starts_with(name, "v_dot2c_")) {
    return SourceForm::whole;
  }
  if (starts_with(name, "v_dot2_f32")) return SourceForm::packed_dot;
  if (starts_with(name, "v_pk_")) return SourceForm::packed;
  for (const char* start : {"v_wmma", "v_readlane", "v_readfirstlane", "v_writelane", "v_permlane", "v_swap",
                            "v_movrels", "v_nop", "v_pipeflush"}) {
    if (starts_with(name, start)) return SourceForm::untouched;
  }
  return SourceForm::plain;
}

void choose_prologue(Inst& inst, const InstInfo& info, const char* mnemonic) {
  const SourceForm form = source_form_of(mnemonic);
  inst.flags &= static_cast<u8>(~kClamp);
  inst.fn = inst.body;
  if (info.omod != 0) {
    inst.fn = unsupported_modifier;
    return;
  }
  if (info.clamp) {
    if (const Body saturating = body_of((std::string(mnemonic) + ".clamp").c_str())) {
      inst.body = inst.fn = saturating;
    } else if (gives_float(mnemonic)) {
      inst.flags |= kClamp;
    } else if (!starts_with(mnemonic, "v_cmp")) {  // there the bit only asks for exceptions
      inst.fn = unsupported_modifier;
      return;
    }
  }
  if (form == SourceForm::untouched) return;
  int scalars = 0, modified = 0, last = 0;
  bool wide = false, simple = true;
  for (int k = 0; k < 3; ++k) {
    const Operand& operand = info.src[k];
    const bool scalar = operand.kind == OperandKind::sgpr;
    const bool prepared = operand.kind != OperandKind::none && needs_preparation(form, info, k);
    if (!scalar && !prepared) continue;
    inst.src[k] = prepared_row(k);
    last = k;
    scalars += scalar;
    modified += prepared;
    wide |= operand.dwords == 2;
    simple &= operand.kind == OperandKind::vgpr && operand.bytes == 4 && !operand.high;
  }
  if (modified != 0 || inst.flags & kClamp || info.dpp.kind != DppControl::Kind::none) {
    const bool one = modified == 1 && scalars == 0 && simple && !wide && form == SourceForm::plain &&
                     !(inst.flags & kClamp) && info.dpp.kind == DppControl::Kind::none;
    inst.fn = one ? kSigned[last] : prologue_of(form);
  } else if (scalars != 0) {
    inst.fn = scalars == 1 && !wide ? kSplat[last] : splat_scalars;
  }
}

void choose_pair(Inst& inst, Pair& pair) {
  const u16 x_result = pair.x_info.dst[0].reg;
  if (reads(pair.y_info, x_result) || pair.y.src[2] == x_result * kRowBytes) {
    pair.x.dst = kPairRow;
    inst.fn = run_pair;
  } else {
    pair.x.dst = x_result;
    inst.fn = run_independent_pair;
  }
}

void splat_scalars(Wave& w, const Inst& i) {
  for (int k = 0; k < 3; ++k) {
    if (i.src[k] == prepared_row(k)) splat(w, i.info->src[k], k);
  }
  i.body(w, i);
}

void prepare_sources(Wave& w, const Inst& i) { prepare<SourceForm::plain>(w, i); }

void run_pair(Wave& w, const Inst& i) {
  const Pair& pair = *i.info->pair;
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
  w.write(pair.x_info.dst[0].reg, w.row(kPairRow));
}

}  // namespace rdna
