#include "isa/disassemble.hpp"

#include <cstdio>
#include <string_view>

namespace rdna {
namespace {

bool is_vop3(const InstInfo& info) { return info.raw[0] >> 26 == 0x35; }
bool has_dpp(const InstInfo& info) { return info.dpp.kind != DppControl::Kind::none; }
bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// Operands, and what follows them after a blank each.
struct Text {
  std::string operands;
  std::string modifiers;

  void add(const std::string& operand) { operands += (operands.empty() ? "" : ", ") + operand; }
  void modify(const std::string& modifier) { modifiers += " " + modifier; }
  void flag(bool set, const char* name) {
    if (set) modify(name);
  }
};

std::string signed_hex(i32 value) { return value < 0 ? "-" + hex(static_cast<u64>(-i64{value})) : hex(static_cast<u64>(value)); }

std::string word_text(u32 word) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", word);
  return text;
}

std::string bit_list(u32 bits, int count) {
  std::string text = "[";
  for (int k = 0; k < count; ++k) text += (k ? "," : "") + std::to_string(bits >> k & 1);
  return text + "]";
}

bool is_half(OperandType type) {
  using enum OperandType;
  return type == b16 || type == b16_sign || type == f16 || type == bf16;
}

// The source that is always a literal, -1 where none is.
int literal_at(const OpInfo& op) { return !op.has(kHasLiteral) ? -1 : op.has(kLiteralMiddle) ? 1 : 2; }

std::string vector_operand(const Operand& operand, OperandType type, const InstInfo& info, bool always_literal = false) {
  std::string text = operand_text(operand, type, always_literal);
  if (operand.kind == OperandKind::vgpr && is_half(type) && !info.op->has(kMix)) text += operand.high ? ".h" : ".l";
  if (operand.absolute) text = "|" + text + "|";
  if (operand.negate) text = operand.kind == OperandKind::constant && !operand.absolute ? "neg(" + text + ")" : "-" + text;
  return text;
}

int source_count(const OpInfo& op) {
  int count = 0;
  while (count < 3 && op.src[count] != OperandType::none) ++count;
  return count;
}

void vector_modifiers(Text& text, const InstInfo& info) {
  const OpInfo& op = *info.op;
  const int sources = source_count(op);
  if (op.format == Format::vop3p) {
    const u32 all = (1u << sources) - 1;
    if (info.op_sel & all) text.modify("op_sel:" + bit_list(info.op_sel, sources));
    const u32 usual = op.has(kMix) ? 0 : all;
    if ((op.has(kPacked) || op.has(kMix)) && (info.op_sel_hi & all) != usual) text.modify("op_sel_hi:" + bit_list(info.op_sel_hi, sources));
    if (!op.has(kMix)) {
      if (info.neg_lo & all) text.modify("neg_lo:" + bit_list(info.neg_lo, sources));
      if (info.neg_hi & all) text.modify("neg_hi:" + bit_list(info.neg_hi, sources));
    }
  } else if (info.op_sel) {
    bool halves = is_half(op.dst[0]) || starts_with(op.name, "v_permlane");
    for (OperandType type : op.src) halves |= is_half(type);
    const bool permutes = starts_with(op.name, "v_permlane");  // there the bits are fetch_inactive and bound_control
    const int count = permutes ? 1 : sources;
    const bool masks = op.dst[0] == OperandType::mask;
    u32 bits = permutes ? info.op_sel & 3u : (info.op_sel & ((1u << count) - 1)) | (masks ? 0 : info.op_sel >> 3 & 1u) << count;
    const bool no_result = op.format == Format::vopc && op.has(kWritesExec);
    if (starts_with(op.name, "v_dot2")) bits &= 12;
    if (starts_with(op.name, "v_cndmask")) bits = 0;
    if (halves && bits) text.modify("op_sel:" + bit_list(bits, no_result ? count : count + 1));
  }
  text.flag(info.clamp, "clamp");
  static constexpr const char* kOutput[4] = {"", "mul:2", "mul:4", "div:2"};
  if (info.omod) text.modify(kOutput[info.omod]);
  if (has_dpp(info)) text.modifiers += dpp_text(info.dpp);
}

void vector_text(Text& text, const InstInfo& info) {
  const OpInfo& op = *info.op;
  const bool compare_exec = op.format == Format::vopc && op.has(kWritesExec);
  for (int k = 0; k < 2; ++k) {
    if (info.dst[k].kind == OperandKind::none || compare_exec || (k == 1 && op.has(kSwaps))) continue;
    text.add(vector_operand(info.dst[k], op.dst[k], info));
  }
  for (int k = 0; k < 4; ++k) {
    if (info.src[k].kind == OperandKind::none || (k == 2 && op.has(kAccumulates))) continue;
    OperandType type = op.src[k];
    if (op.has(kMix) && !(info.op_sel_hi >> k & 1)) type = OperandType::f32;
    text.add(vector_operand(info.src[k], type, info, k == literal_at(op)));
  }
  vector_modifiers(text, info);
}

std::string half_text(const InstInfo& info) {
  std::string text = "v_dual_" + std::string(info.op->name + 2) + " " + register_name(info.dst[0]);
  for (int k = 0; k < 3; ++k) {
    if (info.src[k].kind == OperandKind::none || (k == 2 && info.op->has(kAccumulates))) continue;
    text += ", " + operand_text(info.src[k], info.op->src[k], k == literal_at(*info.op));
  }
  return text;
}

void sopk_text(Text& text, const Inst& inst) {
  const OpInfo& op = *inst.info->op;
  const u32 immediate = inst.imm & 0xffff;
  const std::string_view name = op.name;
  if (name == "s_setreg_b32" || name == "s_setreg_imm32_b32") text.add(hardware_register_text(immediate));
  if (inst.info->dst[0].kind != OperandKind::none) text.add(register_name(inst.info->dst[0]));
  if (inst.info->src[0].kind != OperandKind::none && !(op.dst[0] != OperandType::none)) {
    text.add(op.has(kHasLiteral) ? number(static_cast<u32>(inst.info->src[0].value)) : operand_text(inst.info->src[0], op.src[0]));
  }
  if (starts_with(name, "s_setreg")) return;
  text.add(name == "s_getreg_b32" ? hardware_register_text(immediate)
           : op.has(kBranches)    ? std::to_string(immediate)
                                  : hex(immediate));
}

void sopp_text(Text& text, const Inst& inst) {
  const OpInfo& op = *inst.info->op;
  const u32 immediate = inst.imm & 0xffff;
  const std::string_view name = op.name;
  for (const char* plain : {"s_code_end", "s_endpgm_saved", "s_endpgm_ordered_ps_done", "s_wakeup", "s_ttracedata",
                            "s_icache_inv", "s_barrier", "s_wait_idle"}) {
    if (name == plain) return;
  }
  if (name == "s_waitcnt") return text.add(waitcnt_text(immediate));
  if (name == "s_waitcnt_depctr") return text.add(waitcnt_depctr_text(immediate));
  if (name == "s_delay_alu") return text.add(delay_alu_text(immediate));
  if (starts_with(name, "s_sendmsg")) return text.add(message_text(immediate));
  if (op.has(kBranches)) return text.add(std::to_string(immediate));
  if (name == "s_endpgm") {
    if (immediate) text.add(std::to_string(immediate));
    return;
  }
  for (const char* hexadecimal : {"s_clause", "s_round_mode", "s_wait_event", "s_ttracedata_imm", "s_set_inst_prefetch_distance"}) {
    if (name == hexadecimal) return text.add(hex(immediate));
  }
  text.add(number(immediate));
}

void scalar_text(Text& text, const Inst& inst) {
  const InstInfo& info = *inst.info;
  const OpInfo& op = *info.op;
  if (op.format == Format::sopk) return sopk_text(text, inst);
  if (op.format == Format::sopp) return sopp_text(text, inst);
  if (info.dst[0].kind != OperandKind::none) text.add(register_name(info.dst[0]));
  if (op.src[0] == OperandType::message) text.add(message_text(inst.imm));
  for (int k = 0; k < 3; ++k) {
    if (info.src[k].kind == OperandKind::none || (k == 2 && op.has(kAccumulates))) continue;
    text.add(operand_text(info.src[k], op.src[k], k == literal_at(op)));
  }
}

void smem_text(Text& text, const InstInfo& info) {
  if (info.src[0].kind == OperandKind::none) return;
  text.add(info.dst[0].kind != OperandKind::none ? register_name(info.dst[0]) : std::to_string(info.raw[0] >> 6 & 127));
  text.add(operand_text(info.src[0], info.op->src[0]));
  if (info.src[3].kind != OperandKind::none) {
    text.add(register_name(info.src[3]));
    if (info.offset) text.modify("offset:" + signed_hex(info.offset));
  } else {
    text.add(info.offset ? signed_hex(info.offset) : "null");
  }
  text.flag(info.glc, "glc");
  text.flag(info.dlc, "dlc");
}

void ds_text(Text& text, const InstInfo& info) {
  const std::string_view name = info.op->name;
  if (info.dst[0].kind != OperandKind::none) text.add(register_name(info.dst[0]));
  for (const Operand& operand : info.src) {
    if (operand.kind != OperandKind::none) text.add(register_name(operand));
  }
  if (name.find("2addr") != name.npos) {
    if (info.offset0) text.modify("offset0:" + std::to_string(info.offset0));
    if (info.offset1) text.modify("offset1:" + std::to_string(info.offset1));
  } else if (name == "ds_swizzle_b32") {
    if (info.offset) text.modify("offset:" + swizzle_text(static_cast<u32>(info.offset)));
  } else if (info.offset) {
    text.modify("offset:" + std::to_string(info.offset));
  }
  text.flag(info.gds, "gds");
}

void flat_text(Text& text, const InstInfo& info) {
  const OpInfo& op = *info.op;
  const auto add_address = [&] {
    if (op.src[0] == OperandType::none) return;
    text.add(info.src[0].kind != OperandKind::none ? register_name(info.src[0]) : "off");
  };
  const auto add_scalar = [&] {
    if (op.format != Format::flat) text.add(info.src[2].kind != OperandKind::none ? register_name(info.src[2]) : "off");
  };
  if (info.dst[0].kind != OperandKind::none) text.add(register_name(info.dst[0]));
  add_address();
  if (info.src[1].kind != OperandKind::none) text.add(register_name(info.src[1]));
  add_scalar();
  if (info.offset) text.modify("offset:" + std::to_string(info.offset));
  text.flag(info.glc, "glc");
  text.flag(info.slc, "slc");
  text.flag(info.dlc, "dlc");
}

void mubuf_text(Text& text, const InstInfo& info) {
  const OpInfo& op = *info.op;
  if (op.src[0] == OperandType::none) return;
  const Operand& data = op.has(kLoad) ? info.dst[0] : info.src[1];
  text.add(register_name(data));
  text.add(info.src[0].kind != OperandKind::none ? register_name(info.src[0]) : "off");
  text.add(register_name(info.src[2]));
  text.add(operand_text(info.src[3], OperandType::b32));
  text.flag(info.idxen, "idxen");
  text.flag(info.offen, "offen");
  if (info.offset) text.modify("offset:" + std::to_string(info.offset));
  text.flag(info.glc, "glc");
  text.flag(info.slc, "slc");
  text.flag(info.dlc, "dlc");
  text.flag(info.tfe, "tfe");
}

void collect(std::vector<std::string>& names, const Operand& operand) {
  if (operand.kind != OperandKind::vgpr && operand.kind != OperandKind::sgpr) return;
  if (operand.kind == OperandKind::sgpr && operand.reg == kNull) return;
  std::string name = register_name(operand);
  if (operand.bytes < 4 && operand.kind == OperandKind::vgpr) name += operand.high ? ".h" : ".l";
  for (const std::string& known : names) {
    if (known == name) return;
  }
  names.push_back(name);
}

void collect_implicit(std::vector<std::string>& names, const OpInfo& op, const OpFlag (&flags)[4]) {
  static constexpr u16 kRegisters[4] = {kScc, kVcc, kExec, kM0};
  for (int k = 0; k < 4; ++k) {
    if (!flags[k] || !op.has(flags[k])) continue;
    Operand operand;
    operand.kind = OperandKind::sgpr;
    operand.reg = kRegisters[k];
    collect(names, operand);
  }
}

template <class Collect>
std::vector<std::string> of_halves(const InstInfo& info, Collect collect_one) {
  std::vector<std::string> names;
  if (info.pair) {
    collect_one(names, info.pair->x_info);
    collect_one(names, info.pair->y_info);
  } else if (info.op) {
    collect_one(names, info);
  }
  return names;
}

}  // namespace

std::string mnemonic(const Inst& inst) {
  const InstInfo& info = *inst.info;
  if (!info.op) return ".long";
  std::string name = info.op->name;
  switch (info.op->format) {
    case Format::vop1: case Format::vop2: case Format::vopc: {
      const bool bare = info.op->has(kOneForm) || info.op->has(kHasLiteral) || info.op->src[0] == OperandType::none;
      if (is_vop3(info)) {
        name += bare ? "" : "_e64";
      } else if (has_dpp(info)) {
        return info.op->format == Format::vopc ? name : name + "_dpp";
      } else if (!bare) {
        name += "_e32";
      }
      break;
    }
    case Format::vop3: case Format::vop3p:
      if (has_dpp(info)) name += "_e64";
      break;
    case Format::vopd:
      return "v_dual_" + std::string(info.pair->x_info.op->name + 2);
    default: break;
  }
  return has_dpp(info) ? name + "_dpp" : name;
}

std::string disassemble(const Inst& inst) {
  const InstInfo& info = *inst.info;
  if (inst.words == 0) return "(end of the text section)";
  if (!info.op) return ".long " + word_text(info.raw[0]);
  if (info.pair) return half_text(info.pair->x_info) + " :: " + half_text(info.pair->y_info);
  Text text;
  switch (info.op->format) {
    case Format::sop1: case Format::sop2: case Format::sopc: case Format::sopk: case Format::sopp: scalar_text(text, inst); break;
    case Format::smem: smem_text(text, info); break;
    case Format::ds: ds_text(text, info); break;
    case Format::flat: case Format::global: case Format::scratch: flat_text(text, info); break;
    case Format::mubuf: mubuf_text(text, info); break;
    case Format::mtbuf: case Format::mimg: case Format::exp: case Format::ldsdir: case Format::vinterp: break;
    default: vector_text(text, info);
  }
  std::string result = mnemonic(inst);
  if (!text.operands.empty()) result += " " + text.operands;
  return result + text.modifiers;
}

std::vector<std::string> registers_read(const Inst& inst) {
  return of_halves(*inst.info, [](std::vector<std::string>& names, const InstInfo& info) {
    for (const Operand& operand : info.src) collect(names, operand);
    if (info.op->has(kReadsDst)) collect(names, info.dst[0]);
    if (info.op->has(kSwaps)) collect(names, info.dst[0]);
    collect_implicit(names, *info.op, {kReadsScc, kReadsVcc, kReadsExec, kReadsM0});
  });
}

std::vector<std::string> registers_written(const Inst& inst) {
  return of_halves(*inst.info, [](std::vector<std::string>& names, const InstInfo& info) {
    for (const Operand& operand : info.dst) collect(names, operand);
    collect_implicit(names, *info.op, {kWritesScc, OpFlag{}, kWritesExec, OpFlag{}});
  });
}

}  // namespace rdna
