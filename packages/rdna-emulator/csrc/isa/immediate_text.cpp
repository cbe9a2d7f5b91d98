// Immediates that hold fields: counters, messages, hardware registers, lane patterns.
#include "isa/disassemble.hpp"

namespace rdna {
namespace {

struct Field {
  const char* name;
  int low;
  int bits;

  u32 largest() const { return (1u << bits) - 1; }
  u32 of(u32 immediate) const { return immediate >> low & largest(); }
};

// Only fields that ask for something (below their maximum), or all where none does.
template <std::size_t n>
std::string counters(const Field (&fields)[n], u32 immediate) {
  bool any = false;
  for (const Field& field : fields) any |= field.of(immediate) != field.largest();
  std::string text;
  for (const Field& field : fields) {
    if (any && field.of(immediate) == field.largest()) continue;
    text += (text.empty() ? "" : " ") + std::string(field.name) + "(" + std::to_string(field.of(immediate)) + ")";
  }
  return text;
}

struct Name {
  u32 value;
  const char* text;
};

template <std::size_t n>
const char* find(const Name (&names)[n], u32 value) {
  for (const Name& name : names) {
    if (name.value == value) return name.text;
  }
  return nullptr;
}

constexpr Name kMessages[] = {
    {1, "MSG_INTERRUPT"}, {2, "MSG_HS_TESSFACTOR"}, {3, "MSG_DEALLOC_VGPRS"}, {5, "MSG_STALL_WAVE_GEN"},
    {6, "MSG_HALT_WAVES"}, {9, "MSG_GS_ALLOC_REQ"}, {128, "MSG_RTN_GET_DOORBELL"}, {129, "MSG_RTN_GET_DDID"},
    {130, "MSG_RTN_GET_TMA"}, {131, "MSG_RTN_GET_REALTIME"}, {132, "MSG_RTN_SAVE_WAVE"}, {133, "MSG_RTN_GET_TBA"},
    {134, "MSG_RTN_GET_TBA_TO_PC"},
};

constexpr Name kHardwareRegisters[] = {
    {1, "HW_REG_MODE"}, {2, "HW_REG_STATUS"}, {3, "HW_REG_TRAPSTS"}, {5, "HW_REG_GPR_ALLOC"}, {6, "HW_REG_LDS_ALLOC"},
    {7, "HW_REG_IB_STS"}, {15, "HW_REG_SH_MEM_BASES"}, {18, "HW_REG_PERF_SNAPSHOT_PC_LO"},
    {19, "HW_REG_PERF_SNAPSHOT_PC_HI"}, {20, "HW_REG_FLAT_SCR_LO"}, {21, "HW_REG_FLAT_SCR_HI"}, {23, "HW_REG_HW_ID1"},
    {24, "HW_REG_HW_ID2"}, {27, "HW_REG_PERF_SNAPSHOT_DATA"}, {29, "HW_REG_SHADER_CYCLES"},
};

std::string delay_source(u32 value) {
  static constexpr const char* kSources[12] = {
      "NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2",
      "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3",
  };
  return value < 12 ? kSources[value] : "/* invalid instid value */";
}

std::string mask_pattern(u32 and_mask, u32 or_mask, u32 xor_mask) {
  std::string pattern;
  for (int bit = 4; bit >= 0; --bit) {
    const auto at = [bit](u32 mask) { return mask >> bit & 1; };
    if (!at(and_mask)) {
      pattern += at(or_mask) ^ at(xor_mask) ? '1' : '0';
    } else if (at(or_mask)) {
      pattern += at(xor_mask) ? '0' : '1';
    } else {
      pattern += at(xor_mask) ? 'i' : 'p';
    }
  }
  return pattern;
}

}  // namespace

std::string waitcnt_text(u32 immediate) {
  static constexpr Field kFields[] = {{"vmcnt", 10, 6}, {"expcnt", 0, 3}, {"lgkmcnt", 4, 6}};
  return counters(kFields, immediate);
}

std::string waitcnt_depctr_text(u32 immediate) {
  static constexpr Field kFields[] = {
      {"depctr_hold_cnt", 7, 1}, {"depctr_sa_sdst", 0, 1}, {"depctr_va_vdst", 12, 4}, {"depctr_va_sdst", 9, 3},
      {"depctr_va_ssrc", 8, 1}, {"depctr_va_vcc", 1, 1}, {"depctr_vm_vsrc", 2, 3},
  };
  constexpr u32 kUnused = 0x60;
  return immediate & kUnused ? hex(immediate) : counters(kFields, immediate);
}

std::string delay_alu_text(u32 immediate) {
  static constexpr const char* kSkips[6] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
  const u32 first = immediate & 15, skip = immediate >> 4 & 7, second = immediate >> 7 & 15;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " | ") + part; };
  if (first) add("instid0(" + delay_source(first) + ")");
  if (skip) add("instskip(" + std::string(skip < 6 ? kSkips[skip] : "/* invalid instskip value */") + ")");
  if (second) add("instid1(" + delay_source(second) + ")");
  return text.empty() ? "0" : text;
}

std::string message_text(u32 immediate) {
  if (const char* name = find(kMessages, immediate & 0xff)) return "sendmsg(" + std::string(name) + ")";
  return immediate < 256 ? "sendmsg(" + std::to_string(immediate) + ", 0, 0)" : std::to_string(immediate);
}

std::string hardware_register_text(u32 immediate) {
  const u32 id = immediate & 63, offset = immediate >> 6 & 31, width = (immediate >> 11 & 31) + 1;
  const char* name = find(kHardwareRegisters, id);
  std::string text = "hwreg(" + (name ? std::string(name) : std::to_string(id));
  if (offset || width != 32) text += ", " + std::to_string(offset) + ", " + std::to_string(width);
  return text + ")";
}

// The modes of ds_swizzle_b32: bit 15 four lanes of a quad, else an and, an or and an exclusive-or mask of the lane.
std::string swizzle_text(u32 offset) {
  if (offset == 0) return "";
  if (offset & 0x8000 && !(offset & 0x7f00)) {
    std::string text = "swizzle(QUAD_PERM";
    for (int k = 0; k < 4; ++k) text += "," + std::to_string(offset >> 2 * k & 3);
    return text + ")";
  }
  if (offset & 0x8000) {
    if ((offset & 0xf000) == 0xe000) return "swizzle(FFT," + std::to_string(offset & 31) + ")";
    if ((offset & 0xf000) == 0xc000) {
      return "swizzle(ROTATE," + std::to_string(offset >> 10 & 1) + "," + std::to_string(offset >> 5 & 31) + ")";
    }
    return std::to_string(offset);
  }
  const u32 and_mask = offset & 31, or_mask = offset >> 5 & 31, xor_mask = offset >> 10 & 31;
  if (xor_mask && !or_mask && and_mask == 31) {
    if (!(xor_mask & (xor_mask - 1))) return "swizzle(SWAP," + std::to_string(xor_mask) + ")";
    if (!(xor_mask & (xor_mask + 1))) return "swizzle(REVERSE," + std::to_string(xor_mask + 1) + ")";
  }
  const u32 group = 32 - and_mask;
  if (group > 1 && !(group & (group - 1)) && or_mask < group && !xor_mask) {
    return "swizzle(BROADCAST," + std::to_string(group) + "," + std::to_string(or_mask) + ")";
  }
  return "swizzle(BITMASK_PERM,\"" + mask_pattern(and_mask, or_mask, xor_mask) + "\")";
}

std::string dpp_text(const DppControl& dpp) {
  std::string text;
  if (dpp.kind == DppControl::Kind::dpp8) {
    text = " dpp8:[";
    for (int k = 0; k < 8; ++k) text += (k ? "," : "") + std::to_string(dpp.control >> 3 * k & 7);
    return text + "]" + (dpp.fetch_inactive ? " fi:1" : "");
  }
  const u32 control = dpp.control;
  const std::string low = std::to_string(control & 15);
  switch (control >> 4) {
    case 0x10: text = " row_shl:" + low; break;
    case 0x11: text = " row_shr:" + low; break;
    case 0x12: text = " row_ror:" + low; break;
    case 0x14: text = control == 0x140 ? " row_mirror" : control == 0x141 ? " row_half_mirror" : ""; break;
    case 0x15: text = " row_share:" + low; break;
    case 0x16: text = " row_xmask:" + low; break;
    default:
      if (control < 0x100) {
        text = " quad_perm:[";
        for (int k = 0; k < 4; ++k) text += (k ? "," : "") + std::to_string(control >> 2 * k & 3);
        text += "]";
      }
  }
  if (text.empty() || ((control >> 4) <= 0x12 && (control >> 4) >= 0x10 && (control & 15) == 0)) text = " /* Invalid dpp_ctrl value */";
  text += " row_mask:" + hex(dpp.row_mask) + " bank_mask:" + hex(dpp.bank_mask);
  if (dpp.bound_control) text += " bound_ctrl:1";
  if (dpp.fetch_inactive) text += " fi:1";
  return text;
}

}  // namespace rdna
