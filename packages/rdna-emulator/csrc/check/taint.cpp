// Uninitialised values: taint travels byte by byte and lane by lane through the registers, and is reported where it
// decides something: an address, a branch, EXEC, or what is stored to memory.
#include "check/taint.hpp"
#include "valu/dpp.hpp"

namespace rdna {
namespace {

u32 permuted(const DppControl& dpp, u32 taint) {
  alignas(128) u32 sources[kLanes];
  u32 valid = ~0u;
  if (dpp.kind == DppControl::Kind::dpp8) {
    *reinterpret_cast<u32x*>(sources) = dpp8_source(dpp.control);
  } else {
    const LaneMap& map = lane_maps.maps[dpp.control];
    std::memcpy(sources, map.source, sizeof sources);
    valid = map.valid;
  }
  u32 result = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) result |= (taint >> sources[lane] & 1) << lane;
  return result & valid;
}

u32 lane_select(const Wave& w, const Operand& operand) {
  u32 lane = 0;
  return uniform_value(w, operand, lane) ? lane & 31u : 0;
}

bool reads_taint(const WaveShadow& shadow, const InstPlan& plan) {
  return common(plan.reads_v, shadow.tainted.v) || common(plan.reads_s, shadow.tainted.s) || (shadow.tainted.scc && plan.reads_scc);
}

bool writes_taint(const WaveShadow& shadow, const InstPlan& plan) {
  return common(plan.writes_v, shadow.tainted.v) || common(plan.writes_s, shadow.tainted.s) || (shadow.tainted.scc && plan.writes_scc);
}

void define(WaveShadow& shadow, const u64 (&vgprs)[4]) {
  for (u32 word = 0; word < 4; ++word) {
    for (u64 left = vgprs[word] & shadow.tainted.v[word]; left; left &= left - 1)
      std::memset(shadow.vector_taint[64 * word + __builtin_ctzll(left)], 0, sizeof shadow.vector_taint[0]);
    shadow.tainted.v[word] &= ~vgprs[word];
  }
}

}  // namespace

void set_scalar(WaveShadow& shadow, u16 reg, u32 taint) {
  if (reg == kNull) return;
  if (reg == kScc) {
    shadow.tainted.scc = taint != 0;
    return;
  }
  shadow.scalar_taint[reg] = taint;
  if (reg >= 128) return;
  const u64 bit = 1ull << (reg & 63);
  if (taint) {
    shadow.tainted.s[reg / 64] |= bit;
  } else {
    shadow.tainted.s[reg / 64] &= ~bit;
  }
}

Bytes fetch(const WaveShadow& shadow, const InstInfo& info, const Operand& operand) {
  Bytes bytes;
  if (operand.kind == OperandKind::sgpr) {
    for (int dword = 0; dword < operand.dwords && dword < 2; ++dword)
      for (int byte = 0; byte < 4; ++byte)
        if (shadow.scalar_taint[(operand.reg + dword) & 0xff] >> 8 * byte & 0xff) bytes.lanes[4 * dword + byte] = ~0u;
  } else if (operand.kind == OperandKind::vgpr) {
    for (int dword = 0; dword < operand.dwords && dword < 2; ++dword)
      for (int byte = 0; byte < 4; ++byte) bytes.lanes[4 * dword + byte] = shadow.vector_taint[operand.reg + dword][byte];
    if (operand.bytes == 2) {
      if (operand.high) bytes.lanes[0] = bytes.lanes[2], bytes.lanes[1] = bytes.lanes[3];
      for (int byte = 2; byte < kMaxBytes; ++byte) bytes.lanes[byte] = 0;
    }
  }
  if (info.dpp.kind != DppControl::Kind::none && &operand == &info.src[0])
    for (u32& byte : bytes.lanes) byte = byte ? permuted(info.dpp, byte) : 0;
  return bytes;
}

u32 any_of(const WaveShadow& shadow, const InstInfo& info, const Operand& operand) {
  if (operand.kind == OperandKind::none || operand.kind == OperandKind::constant) return 0;
  if (operand.dwords <= 2) return fetch(shadow, info, operand).any();
  u32 all = 0;
  for (int dword = 0; dword < operand.dwords; ++dword) {
    if (operand.kind == OperandKind::sgpr) {
      if (shadow.scalar_taint[(operand.reg + dword) & 0xff]) return ~0u;
    } else {
      for (const u32 byte : shadow.vector_taint[operand.reg + dword]) all |= byte;
    }
  }
  return all;
}

void store(WaveShadow& shadow, const Operand& dst, const Bytes& bytes, u32 lanes) {
  if (dst.kind != OperandKind::vgpr) return;
  for (int dword = 0; dword < dst.dwords; ++dword) {
    u32* row = shadow.vector_taint[dst.reg + dword];
    const int first = dst.bytes == 2 && dst.high ? 2 : 0;
    const int count = dst.bytes == 2 ? 2 : 4;
    for (int byte = 0; byte < count; ++byte) {
      const u32 taint = bytes.lanes[(4 * dword + byte) % kMaxBytes];
      row[first + byte] = (row[first + byte] & ~lanes) | (taint & lanes);
    }
    update_tainted(shadow, dst.reg + dword);
  }
}

bool uniform_value(const Wave& w, const Operand& operand, u32& value) {
  if (operand.kind == OperandKind::constant) {
    value = static_cast<u32>(operand.value);
    return true;
  }
  if (operand.kind != OperandKind::sgpr || w.shadow->scalar_taint[operand.reg]) return false;
  value = w.s[operand.reg];
  return true;
}

void undefined(Wave& w, const Inst& i, int lane, const char* what) {
  report_finding(w, i, lane, std::string("uninitialised: ") + what + " depends on a register or LDS byte that nothing has written");
}

void update_tainted(WaveShadow& shadow, u32 vgpr) {
  u32 all = 0;
  for (const u32 byte : shadow.vector_taint[vgpr]) all |= byte;
  const u64 bit = 1ull << (vgpr & 63);
  if (all) {
    shadow.tainted.v[vgpr / 64] |= bit;
  } else {
    shadow.tainted.v[vgpr / 64] &= ~bit;
  }
}

// A d16 load leaves the other half of its register as it was.
void define_loaded(WaveShadow& shadow, const Inst& i, const LaneAccess& access) {
  const u32 first = access.high ? 2 : 0;
  const u32 last = access.bytes < 4 && i.info->dst[0].bytes < 4 ? first + i.info->dst[0].bytes : 4;
  for (u32 reg = access.data_row; reg < access.data_row + (access.bytes + 3) / 4; ++reg) {
    if (!is_tainted(shadow, reg)) continue;
    for (u32 byte = first; byte < last; ++byte) shadow.vector_taint[reg][byte] &= ~access.lanes;
    update_tainted(shadow, reg);
  }
}

void check_address_taint(Wave& w, const Inst& i, const Operand& operand, u32 lanes) {
  const WaveShadow& shadow = *w.shadow;
  u32 taint = 0;
  if (operand.kind == OperandKind::vgpr) {
    for (int dword = 0; dword < operand.dwords; ++dword) {
      const u32* row = shadow.vector_taint[operand.reg + dword];
      const int first = operand.bytes < 4 && operand.high ? 2 : 0;
      for (int byte = first; byte < first + (operand.bytes < 4 ? operand.bytes : 4); ++byte) taint |= row[byte];
    }
  } else if (operand.kind == OperandKind::sgpr) {
    for (int dword = 0; dword < operand.dwords; ++dword)
      if (shadow.scalar_taint[(operand.reg + dword) & 0xff]) taint = ~0u;
  }
  taint &= lanes;
  if (taint) undefined(w, i, __builtin_ctz(taint), &operand == &i.info->src[1] ? "stored data" : "an address");
}

void propagate(Wave& w, const Inst& i, const InstPlan& plan) {
  WaveShadow& shadow = *w.shadow;
  if (plan.rule == Rule::none) return;
  const bool reads = reads_taint(shadow, plan);
  if (!reads && !writes_taint(shadow, plan)) return;
  const u32 exec = w.exec();
  if (!reads && plan.defines && exec == ~0u) return define(shadow, plan.writes_v);
  const InstInfo& info = *i.info;
  switch (plan.rule) {
    case Rule::memory:
      if (exec) check_address_taint(w, i, info.src[0], exec);
      for (int k = 2; k < 4; ++k)
        if (info.src[k].kind == OperandKind::sgpr) check_address_taint(w, i, info.src[k], ~0u);
      for (int reg = 0; reg < 128; ++reg)
        if (plan.writes_s[reg / 64] >> (reg & 63) & 1) set_scalar(shadow, static_cast<u16>(reg), 0);
      return;
    case Rule::branch_scc:
      if (shadow.tainted.scc) undefined(w, i, -1, "a branch");
      return;
    case Rule::branch_vcc:
      if (shadow.scalar_taint[kVcc]) undefined(w, i, -1, "a branch");
      return;
    case Rule::pair: {
      const Bytes x = evaluate(w, info.pair->x, plan.pair_rules[0]);
      const Bytes y = evaluate(w, info.pair->y, plan.pair_rules[1]);
      store(shadow, info.pair->x_info.dst[0], x, exec);
      store(shadow, info.pair->y_info.dst[0], y, exec);
      return;
    }
    case Rule::compare:
    case Rule::compare_exec: {
      u32 taint = 0;
      for (const Operand& operand : info.src) taint |= any_of(shadow, info, operand);
      taint &= exec;
      if (plan.rule == Rule::compare_exec) {
        if (taint) undefined(w, i, __builtin_ctz(taint), "EXEC");
      } else {
        set_scalar(shadow, i.sdst, taint);
      }
      return;
    }
    case Rule::read_lane:
    case Rule::read_first_lane: {
      const u32 lane = plan.rule == Rule::read_first_lane ? (exec ? __builtin_ctz(exec) : 0) : lane_select(w, info.src[1]);
      const Bytes from = fetch(shadow, info, info.src[0]);
      u32 taint = 0;
      for (int byte = 0; byte < 4; ++byte)
        if (from.lanes[byte] >> lane & 1) taint |= 0xffu << 8 * byte;
      set_scalar(shadow, i.dst, taint);
      return;
    }
    case Rule::write_lane:
      store(shadow, info.dst[0], fetch(shadow, info, info.src[0]), 1u << lane_select(w, info.src[1]));
      return;
    case Rule::swap: {
      const Bytes a = fetch(shadow, info, info.src[0]), b = fetch(shadow, info, info.dst[0]);
      store(shadow, info.dst[0], a, exec);
      store(shadow, info.src[0], b, exec);
      return;
    }
    case Rule::matrix:
      matrix_result(w, info);
      return;
    default:
      break;
  }
  if (!plan.vector && plan.rule != Rule::lane_exchange) {
    propagate_scalar(w, i, plan);
    return;
  }
  const Bytes result = evaluate(w, i, plan.rule);
  store(shadow, info.dst[0], result, exec);
  if (info.dst[1].kind == OperandKind::sgpr) set_scalar(shadow, info.dst[1].reg, result.any() & exec);
}

}  // namespace rdna
