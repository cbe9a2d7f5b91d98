// Prologues: scalars, modifiers, halves and DPP of vector sources, and VOPD pairs.
#include "valu/prologue.hpp"

#include <string>
#include <string_view>

#include "valu/dpp.hpp"

namespace rdna {
namespace {

constexpr u16 kVccz = 251, kExecz = 252;
constexpr i32 kRowBytes = 4 * kLanes;
constexpr i32 prepared_row(int k) { return (kSourceRows + 2 * k) * kRowBytes; }

u32 scalar_value(const Wave& w, u16 number) {
  if (number == kVccz) return w.s[kVcc] == 0;
  if (number == kExecz) return w.s[kExec] == 0;
  return w.s[number];
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

RDNA_INLINE u32x packed_halves(const InstInfo& info, int k, u32x value) {
  const u32 down = (info.op_sel >> k & 1u) * 16u, up = (~info.op_sel_hi >> k & 1u) * 16u;
  const u32 signs = (info.neg_lo >> k & 1u) << 15 | (info.neg_hi >> k & 1u) << 31;
  return (((value >> down) & 0xffffu) | ((value << up) & 0xffff0000u)) ^ signs;
}

RDNA_INLINE u32x mix_operand(const InstInfo& info, int k, u32x value) {
  if (info.op_sel_hi >> k & 1) {
    const u32x half = value >> (info.op_sel >> k & 1u) * 16u;
    value = bits<u32x>(convert<f32x>(bits<f16x>(convert<u16x>(half))));
  }
  const u32 keep = info.neg_hi >> k & 1 ? 0x7fffffffu : ~0u;
  return (value & keep) ^ (info.neg_lo >> k & 1u) << 31;
}

RDNA_INLINE u32x with_sign(const Operand& operand, u32x value, u32 sign) {
  return (value & (operand.absolute ? ~sign : ~0u)) ^ (operand.negate ? sign : 0u);
}

RDNA_INLINE u32x plain_operand(const Operand& operand, u32x value) {
  return with_sign(operand, value >> (operand.high ? 16u : 0u), operand.bytes == 2 ? 0x8000u : 0x80000000u);
}

template <SourceForm form>
RDNA_INLINE u32x modified(const InstInfo& info, int k, u32x value) {
  if constexpr (form == SourceForm::plain) return plain_operand(info.src[k], value);
  if constexpr (form == SourceForm::signs) return with_sign(info.src[k], value, 0x80000000u);
  if constexpr (form == SourceForm::half_dot) {
    return k < 2 ? with_sign(info.src[k], value, 0x80008000u) : plain_operand(info.src[k], value);
  }
  if constexpr (form == SourceForm::packed) return packed_halves(info, k, value);
  if constexpr (form == SourceForm::packed_dot) {
    return k < 2 ? packed_halves(info, k, value) : value ^ (info.neg_lo >> 2 & 1u) << 31;
  }
  if constexpr (form == SourceForm::mix) return mix_operand(info, k, value);
  return value;
}

// Where a prepared source comes from. `any` looks at the operand; it is the only one for 64-bit operands.
enum class From : u8 { direct, any, vector, scalar, moved };

void prepare_wide(Wave& w, const Operand& operand, int k) {  // the sign is in the second register
  w.row(kSourceRows + 2 * k) = first_row(w, operand);
  w.row(kSourceRows + 2 * k + 1) = plain_operand(operand, second_row(w, operand));
}

template <SourceForm form, From from, int k>
RDNA_INLINE void prepare_source(Wave& w, const Inst& i, const InstInfo& info) {
  const Operand& operand = info.src[k];
  u32x& row = w.row(kSourceRows + 2 * k);
  if constexpr (from == From::any) {
    if (i.src[k] != prepared_row(k)) return;
    if (operand.dwords == 2) return prepare_wide(w, operand, k);
    row = modified<form>(info, k, first_row(w, operand));
  } else if constexpr (from == From::vector) {
    row = modified<form>(info, k, *reinterpret_cast<const u32x*>(w.v[operand.reg]));
  } else if constexpr (from == From::scalar) {
    row = modified<form>(info, k, u32x(w.s[operand.reg]));
  }
}

// NaN becomes 0: DX10_CLAMP is set.
template <class T>
RDNA_INLINE T clamped(T x) {
  x = x > T(0) ? x : T(0);
  return x < T(1) ? x : T(1);
}

template <SourceForm form>
[[gnu::noinline]] void clamp_result(Wave& w, const Inst& i) {
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

template <SourceForm form, From a, From b, From c>
void prepare(Wave& w, const Inst& i) {
  const InstInfo& info = *i.info;
  const u32 exec = w.exec();
  if constexpr (a == From::moved) {  // lanes that DPP excludes are out of EXEC for as long as the body runs
    const Moved first = moved(w, info);
    w.row(kSourceRows) = modified<form>(info, 0, first.value);
    w.s[kExec] = exec & first.lanes;
  } else {
    prepare_source<form, a, 0>(w, i, info);
  }
  prepare_source<form, b, 1>(w, i, info);
  prepare_source<form, c, 2>(w, i, info);
  i.body(w, i);
  if (i.flags & kClamp) clamp_result<form>(w, i);
  if constexpr (a == From::moved) {
    if (i.sdst != kExec) w.s[kExec] = exec;
  }
}

void unsupported_modifier(Wave& w, const Inst& i) {
  const InstInfo& info = *i.info;
  const char* what = info.omod    ? "the output modifier (omod) is not supported"
                     : info.clamp ? "clamp is not supported on this operation"
                                  : "this DPP control does not exist on gfx11";
  trap(w, i, Fault::unsupported, -1, what);
}

void run_independent_pair(Wave& w, const Inst& i) {
  const Pair& pair = *i.info->pair;
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
}

bool needs_preparation(SourceForm form, const InstInfo& info, int k) {
  const Operand& operand = info.src[k];
  const u32 bit = 1u << k;
  const bool negated = (info.neg_lo | info.neg_hi) & bit;
  switch (form) {
    case SourceForm::plain:
    case SourceForm::half_dot: return operand.high || operand.negate || operand.absolute;
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

// The prologue of a form, by where its sources come from.
template <SourceForm form, From a, From b>
Body prologue_of(From c) {
  switch (c) {
    case From::vector: return prepare<form, a, b, From::vector>;
    case From::scalar: return prepare<form, a, b, From::scalar>;
    default: return prepare<form, a, b, From::direct>;
  }
}
template <SourceForm form, From a>
Body prologue_of(From b, From c) {
  switch (b) {
    case From::vector: return prologue_of<form, a, From::vector>(c);
    case From::scalar: return prologue_of<form, a, From::scalar>(c);
    default: return prologue_of<form, a, From::direct>(c);
  }
}
template <SourceForm form>
Body prologue_of(const From (&from)[3]) {
  const auto [a, b, c] = from;
  if (a == From::any || b == From::any || c == From::any) {
    return a == From::moved ? prepare<form, From::moved, From::any, From::any>
                            : prepare<form, From::any, From::any, From::any>;
  }
  switch (a) {
    case From::vector: return prologue_of<form, From::vector>(b, c);
    case From::scalar: return prologue_of<form, From::scalar>(b, c);
    case From::moved: return prologue_of<form, From::moved>(b, c);
    default: return prologue_of<form, From::direct>(b, c);
  }
}
Body prologue_of(SourceForm form, const From (&from)[3]) {
  switch (form) {
    case SourceForm::packed: return prologue_of<SourceForm::packed>(from);
    case SourceForm::half_dot: return prologue_of<SourceForm::half_dot>(from);
    case SourceForm::packed_dot: return prologue_of<SourceForm::packed_dot>(from);
    case SourceForm::mix: return prologue_of<SourceForm::mix>(from);
    case SourceForm::plain: return prologue_of<SourceForm::plain>(from);
    case SourceForm::signs: return prologue_of<SourceForm::signs>(from);
    default: return prologue_of<SourceForm::whole>(from);
  }
}

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
  if (name == "v_dot2_f16_f16" || name == "v_dot2_bf16_bf16") return SourceForm::half_dot;
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
  const bool dpp = info.dpp.kind != DppControl::Kind::none;
  if (info.dpp.kind == DppControl::Kind::dpp16 &&
      (info.dpp.control >= LaneMaps::kControls || !lane_maps.maps[info.dpp.control].exists)) {
    inst.fn = unsupported_modifier;
    return;
  }
  From from[3] = {From::direct, From::direct, From::direct};
  bool any_prepared = false, any_modified = false, signs_only = form == SourceForm::plain;
  for (int k = 0; k < 3; ++k) {
    const Operand& operand = info.src[k];
    const bool scalar = operand.kind == OperandKind::sgpr;
    const bool modifies = operand.kind != OperandKind::none && needs_preparation(form, info, k);
    if (!scalar && !modifies && !(dpp && k == 0)) continue;
    inst.src[k] = prepared_row(k);
    any_prepared = true;
    any_modified |= modifies;
    signs_only &= operand.bytes == 4;
    const bool evaluated = operand.kind == OperandKind::constant || (scalar && operand.reg >= kVccz);
    from[k] = operand.dwords == 2 || evaluated ? From::any : scalar ? From::scalar : From::vector;
  }
  const bool clamp = inst.flags & kClamp;
  if (!any_prepared && !clamp) return;
  if (dpp) from[0] = From::moved;
  const SourceForm modifying = signs_only ? SourceForm::signs : form;
  inst.fn = prologue_of(any_modified || clamp ? modifying : SourceForm::whole, from);
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
  prepare<SourceForm::whole, From::any, From::any, From::any>(w, i);
}

void prepare_sources(Wave& w, const Inst& i) {
  prepare<SourceForm::plain, From::any, From::any, From::any>(w, i);
}

void run_pair(Wave& w, const Inst& i) {
  const Pair& pair = *i.info->pair;
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
  w.write(pair.x_info.dst[0].reg, w.row(kPairRow));
}

}  // namespace rdna
