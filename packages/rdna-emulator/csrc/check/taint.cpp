// Uninitialised values: taint travels byte by byte and lane by lane through the registers, and is reported where it
// decides something: an address, a branch, EXEC, or what is stored to memory.
#include <string_view>

#include "check/shadow.hpp"
#include "isa/op.hpp"
#include "memory/exchange.hpp"

namespace rdna {
namespace {

constexpr int kMaxBytes = 8;

// Undefined lanes of each byte of an operand, low byte first.
struct Bytes {
  u32 lanes[kMaxBytes] = {};
  u32 any() const {
    u32 all = 0;
    for (const u32 byte : lanes) all |= byte;
    return all;
  }
  void merge(const Bytes& other) {
    for (int byte = 0; byte < kMaxBytes; ++byte) lanes[byte] |= other.lanes[byte];
  }
};

u32& scalar_taint(WaveShadow& shadow, u16 reg) { return shadow.scalar_taint[reg]; }

void set_scalar(WaveShadow& shadow, u16 reg, u32 taint) {
  if (reg == kNull) return;
  if (reg == kScc) {
    shadow.scc_tainted = taint != 0;
    return;
  }
  shadow.scalar_taint[reg] = taint;
  if (reg >= 128) return;
  const u64 bit = 1ull << (reg & 63);
  if (taint) {
    shadow.tainted_s[reg / 64] |= bit;
  } else {
    shadow.tainted_s[reg / 64] &= ~bit;
  }
}

u32 dpp_source(const DppControl& dpp, u32 lane, bool& valid) {
  valid = true;
  if (dpp.kind == DppControl::Kind::dpp8) return (lane & ~7u) | (dpp.control >> 3 * (lane & 7) & 7);
  const u32 row = lane & 16u, at = lane & 15u, control = dpp.control, amount = control & 15u;
  u32 source = at;
  if (control < 0x100) {
    return (lane & ~3u) | (control >> 2 * (lane & 3) & 3);
  } else if (control < 0x110) {
    source = at + amount, valid = source < 16;
  } else if (control < 0x120) {
    valid = at >= amount, source = at - amount;
  } else if (control < 0x130) {
    source = (at - amount) & 15u;
  } else if (control == 0x140) {
    source = 15u - at;
  } else if (control == 0x141) {
    source = (at & 8u) | (7u - (at & 7u));
  } else if (control < 0x160) {
    source = amount;
  } else {
    source = at ^ amount;
  }
  return row | (source & 15u);
}

u32 permuted(const DppControl& dpp, u32 taint) {
  u32 result = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) {
    bool valid;
    const u32 source = dpp_source(dpp, lane, valid);
    if (valid) result |= (taint >> source & 1) << lane;
  }
  return result;
}

// Taint of an operand's first eight bytes; a high half is moved down.
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

Bytes spread(u32 lanes) {
  Bytes bytes;
  for (u32& byte : bytes.lanes) byte = lanes;
  return bytes;
}

// The value that an operand has in every lane, if that is known before running.
bool uniform_value(const Wave& w, const Operand& operand, u32& value) {
  if (operand.kind == OperandKind::constant) {
    value = static_cast<u32>(operand.value);
    return true;
  }
  if (operand.kind != OperandKind::sgpr || w.shadow->scalar_taint[operand.reg]) return false;
  value = w.s[operand.reg];
  return true;
}

// Bytes [0, 4) of a value whose bits came from `shift` bits further up in the source bytes.
Bytes shifted_right(const Bytes& source, u32 shift, int source_bytes) {
  Bytes result;
  for (int byte = 0; byte < 4; ++byte) {
    const int low = (8 * byte + static_cast<int>(shift)) / 8, high = (8 * byte + 7 + static_cast<int>(shift)) / 8;
    for (int from = low; from <= high; ++from)
      if (from < source_bytes) result.lanes[byte] |= source.lanes[from];
  }
  return result;
}

Bytes shifted_left(const Bytes& source, u32 shift) {
  Bytes result;
  for (int byte = 0; byte < kMaxBytes; ++byte) {
    const int low = 8 * byte - static_cast<int>(shift), high = low + 7;
    for (int from = 0; from < kMaxBytes; ++from)
      if (8 * from + 7 >= low && 8 * from <= high) result.lanes[byte] |= source.lanes[from];
  }
  return result;
}

Bytes masked(const Wave& w, const Operand& mask, Bytes bytes, bool inverted = false) {
  u32 value;
  if (uniform_value(w, mask, value))
    for (int byte = 0; byte < 4; ++byte)
      if ((((inverted ? ~value : value) >> 8 * byte) & 0xff) == 0) bytes.lanes[byte] = 0;
  return bytes;
}

Bytes upward(Bytes bytes) {
  for (int byte = 1; byte < kMaxBytes; ++byte) bytes.lanes[byte] |= bytes.lanes[byte - 1];
  return bytes;
}

Bytes half_of(const Bytes& bytes, bool high) {
  Bytes half;
  half.lanes[0] = bytes.lanes[high ? 2 : 0] | bytes.lanes[high ? 3 : 1];
  half.lanes[1] = half.lanes[0];
  return half;
}

// A 16-bit half of an operand that stands for one component: what an operation on that half depends on.
u32 component(const WaveShadow& shadow, const InstInfo& info, int k, bool high) {
  return half_of(fetch(shadow, info, info.src[k]), high).lanes[0];
}

Bytes vector_result(Wave& w, const InstInfo& info, Rule rule) {
  const WaveShadow& shadow = *w.shadow;
  const auto source = [&](int k) { return fetch(shadow, info, info.src[k]); };
  u32 amount;
  switch (rule) {
    case Rule::bytewise: {
      Bytes all;
      for (const Operand& operand : info.src) all.merge(fetch(shadow, info, operand));
      return all;
    }
    case Rule::bit_and:
    case Rule::bit_and_or: {
      Bytes a = masked(w, info.src[1], source(0)), b = masked(w, info.src[0], source(1));
      a.merge(b);
      if (rule == Rule::bit_and_or) a.merge(source(2));
      return a;
    }
    case Rule::bit_insert: {
      Bytes all = source(0);
      all.merge(masked(w, info.src[0], source(1)));
      all.merge(masked(w, info.src[0], source(2), true));
      return all;
    }
    case Rule::upward: {
      Bytes all;
      for (const Operand& operand : info.src) {
        Bytes bytes = fetch(shadow, info, operand);
        if (operand.dwords == 1)
          for (int byte = 4; byte < kMaxBytes; ++byte) bytes.lanes[byte] = 0;
        all.merge(bytes);
      }
      return upward(all);
    }
    case Rule::shift_left:
    case Rule::shift_right:
    case Rule::shift_left_or: {
      const bool reversed = rule != Rule::shift_left_or;  // v_lshlrev: the amount comes first
      const int value = reversed ? 1 : 0;
      const Operand& by = info.src[reversed ? 0 : 1];
      Bytes result;
      if (uniform_value(w, by, amount)) {
        const u32 width = info.src[value].dwords == 2 ? 63 : 31;
        result = rule == Rule::shift_right ? shifted_right(source(value), amount & width, 4 * info.src[value].dwords)
                                           : shifted_left(source(value), amount & width);
      } else {
        result = source(value);
        result.merge(spread(fetch(shadow, info, by).any()));
        if (rule == Rule::shift_right) result = spread(result.any());
        else result = upward(result);
      }
      if (rule == Rule::shift_left_or) result.merge(source(2));
      return result;
    }
    case Rule::align_bits:
    case Rule::align_bytes: {
      if (!uniform_value(w, info.src[2], amount)) break;
      Bytes both = source(1);
      const Bytes upper = source(0);
      for (int byte = 0; byte < 4; ++byte) both.lanes[4 + byte] = upper.lanes[byte];
      return shifted_right(both, rule == Rule::align_bits ? amount & 31 : 8 * (amount & 3), 8);
    }
    case Rule::extract_bits: {
      u32 width;
      if (!uniform_value(w, info.src[1], amount) || !uniform_value(w, info.src[2], width)) break;
      amount &= 31, width &= 31;
      Bytes result;
      const Bytes from = source(0);
      for (u32 byte = amount / 8; byte < 4 && 8 * byte < amount + width; ++byte) result.lanes[0] |= from.lanes[byte];
      return spread(result.lanes[0]);
    }
    case Rule::permute_bytes: {
      u32 selector;
      if (!uniform_value(w, info.src[2], selector)) break;
      const Bytes low = source(1), high = source(0);
      Bytes result;
      for (int byte = 0; byte < 4; ++byte) {
        const u32 from = selector >> 8 * byte & 0xff;
        if (from < 4) result.lanes[byte] = low.lanes[from];
        else if (from < 8) result.lanes[byte] = high.lanes[from - 4];
        else if (from < 12) result.lanes[byte] = (from < 10 ? low : high).lanes[from & 1 ? 3 : 1];
      }
      return result;
    }
    case Rule::multiply_add_64: {
      Bytes factors = source(0);
      factors.merge(source(1));
      Bytes result = spread(factors.any());
      result.merge(upward(source(2)));
      return result;
    }
    case Rule::packed: {
      u32 halves[2] = {};
      for (int k = 0; k < 3; ++k) {
        if (info.src[k].kind == OperandKind::none) continue;
        halves[0] |= component(shadow, info, k, info.op_sel >> k & 1);
        halves[1] |= component(shadow, info, k, info.op_sel_hi >> k & 1);
      }
      Bytes result;
      for (int byte = 0; byte < 4; ++byte) result.lanes[byte] = halves[byte / 2];
      return result;
    }
    case Rule::pack_halves: {
      Bytes result;
      for (int half = 0; half < 2; ++half) {
        const u32 taint = fetch(shadow, info, info.src[half]).any();
        result.lanes[2 * half] = result.lanes[2 * half + 1] = taint;
      }
      return result;
    }
    default:
      break;
  }
  u32 all = 0;
  for (int k = 0; k < 3; ++k) all |= any_of(shadow, info, info.src[k]);
  return spread(all);
}

u32 lane_select(const Wave& w, const Operand& operand) {
  u32 lane = 0;
  return uniform_value(w, operand, lane) ? lane & 31u : 0;
}

void matrix_result(Wave& w, const InstInfo& info) {
  WaveShadow& shadow = *w.shadow;
  const u32 a = any_of(shadow, info, info.src[0]), b = any_of(shadow, info, info.src[1]);
  const Operand& dst = info.dst[0];
  for (int j = 0; j < dst.dwords; ++j) {
    u32 taint = b;
    for (u32 half = 0; half < 2; ++half)
      if (a >> (16 * half + 2 * j + half) & 1) taint |= 0xffffu << 16 * half;
    const Operand& c = info.src[2];
    if (c.kind == OperandKind::vgpr)
      for (const u32 byte : shadow.vector_taint[c.reg + j]) taint |= byte;
    for (u32& byte : shadow.vector_taint[dst.reg + j]) byte = taint;
    update_tainted(shadow, dst.reg + j);
  }
}

u32 mask_taint(const WaveShadow& shadow, const Inst& i) { return shadow.scalar_taint[i.smask & 0xff]; }

void undefined(Wave& w, const Inst& i, int lane, const char* what) {
  report_finding(w, i, lane, std::string("uninitialised: ") + what + " depends on a register or LDS byte that nothing has written");
}

// DS instructions that move data between lanes: what an inactive lane would give is a defined 0.
Bytes exchanged(Wave& w, const Inst& i) {
  const WaveShadow& shadow = *w.shadow;
  const InstInfo& info = *i.info;
  const std::string_view name = info.op->name;
  const bool swizzle = name == "ds_swizzle_b32", scatters = name == "ds_permute_b32";
  const Bytes from = fetch(shadow, info, info.src[swizzle ? 0 : 1]);
  const u32 exec = w.exec(), address_taint = swizzle ? 0 : fetch(shadow, info, info.src[0]).any();
  if (scatters && (address_taint & exec)) return spread(~0u);
  Bytes result = spread(address_taint);
  for (u32 lane = 0; lane < kLanes; ++lane) {
    const u32 other = swizzle ? swizzled_lane(lane, i.imm & 0xffff) : (w.v[info.src[0].reg][lane] + i.imm) / 4 % kLanes;
    const u32 source = scatters ? lane : other, target = scatters ? other : lane;
    if (!(exec >> source & 1)) continue;
    for (int byte = 0; byte < 4; ++byte) {
      u32& taint = result.lanes[byte];
      if (scatters) taint &= ~(1u << target);  // of several, the highest lane stays
      taint |= (from.lanes[byte] >> source & 1) << target;
    }
  }
  return result;
}

// The result of a vector instruction; kept apart from storing it, for VOPD reads both halves first.
Bytes evaluate(Wave& w, const Inst& i, Rule rule) {
  WaveShadow& shadow = *w.shadow;
  const InstInfo& info = *i.info;
  Bytes result;
  switch (rule) {
    case Rule::select: {
      const u32 mask = w.s[i.smask];
      const Bytes a = fetch(shadow, info, info.src[0]), b = fetch(shadow, info, info.src[1]);
      for (int byte = 0; byte < kMaxBytes; ++byte)
        result.lanes[byte] = (b.lanes[byte] & mask) | (a.lanes[byte] & ~mask) | mask_taint(shadow, i);
      return result;
    }
    case Rule::permlane:
    case Rule::permlane_swap_half: {
      const Bytes from = fetch(shadow, info, info.src[0]);
      if (from.any() == 0 && any_of(shadow, info, info.src[1]) == 0 && any_of(shadow, info, info.src[2]) == 0) return result;
      u32 low = 0, high = 0;
      if (!uniform_value(w, info.src[1], low) || !uniform_value(w, info.src[2], high)) return spread(~0u);
      const u64 select = low | static_cast<u64>(high) << 32;
      for (u32 lane = 0; lane < kLanes; ++lane) {
        const u32 row = rule == Rule::permlane ? lane & 16u : ~lane & 16u;
        const u32 source = row | static_cast<u32>(select >> 4 * (lane & 15) & 15);
        for (int byte = 0; byte < 4; ++byte) result.lanes[byte] |= (from.lanes[byte] >> source & 1) << lane;
      }
      return result;
    }
    case Rule::lane_exchange:
      return exchanged(w, i);
    default:
      result = vector_result(w, info, rule);
      if (info.src[3].kind == OperandKind::sgpr)
        for (u32& byte : result.lanes) byte |= mask_taint(shadow, i);
      return result;
  }
}

void propagate_scalar(Wave& w, const Inst& i, const InstPlan& plan) {
  WaveShadow& shadow = *w.shadow;
  const InstInfo& info = *i.info;
  const int dwords = info.dst[0].dwords == 2 ? 2 : 1;
  u32 result[2] = {};
  bool any = plan.reads_scc && shadow.scc_tainted;
  const auto value = [&](int k, int dword) -> u32 {
    const Operand& operand = info.src[k];
    if (operand.kind == OperandKind::constant) return static_cast<u32>(operand.value >> 32 * dword);
    return w.s[(operand.reg + dword) & 0xff];
  };
  const auto taint = [&](int k, int dword) -> u32 {
    const Operand& operand = info.src[k];
    if (operand.kind != OperandKind::sgpr) return 0;
    if (operand.reg == kScc) return shadow.scc_tainted ? 1 : 0;
    return shadow.scalar_taint[(operand.reg + dword) & 0xff];
  };
  for (int k = 0; k < 4; ++k)
    for (int dword = 0; dword < info.src[k].dwords; ++dword) any |= taint(k, dword) != 0;
  for (int dword = 0; dword < dwords; ++dword) {
    const u32 a = taint(0, dword), b = taint(1, dword);
    const u32 x = value(0, dword), y = value(1, dword);
    switch (plan.rule) {
      case Rule::scalar_copy: result[dword] = a; break;
      case Rule::scalar_and: result[dword] = (a & b) | (a & y) | (b & x); break;
      case Rule::scalar_and_not: result[dword] = (a & b) | (a & ~y) | (b & x); break;
      case Rule::scalar_or: result[dword] = (a & b) | (a & ~y) | (b & ~x); break;
      case Rule::scalar_or_not: result[dword] = (a & b) | (a & y) | (b & ~x); break;
      case Rule::scalar_xor: result[dword] = a | b; break;
      case Rule::scalar_shift_left:
      case Rule::scalar_shift_right: {
        if (b) {
          result[dword] = ~0u;
        } else if (dwords == 2) {
          const u64 whole = a | static_cast<u64>(taint(0, 1 - dword)) << 32;
          const u64 low_first = dword == 0 ? whole : taint(0, 0) | static_cast<u64>(a) << 32;
          const u32 by = value(1, 0) & 63;
          const u64 moved = plan.rule == Rule::scalar_shift_left ? low_first << by : low_first >> by;
          result[dword] = static_cast<u32>(moved >> 32 * dword);
        } else {
          const u32 by = value(1, 0) & 31;
          result[dword] = plan.rule == Rule::scalar_shift_left ? a << by : a >> by;
        }
        break;
      }
      case Rule::scalar_select:
        result[dword] = shadow.scc_tainted ? ~0u : w.scc() ? a : b;
        break;
      case Rule::scalar_pack: {
        const u32 low = plan.pack_a ? a >> 16 : a & 0xffffu, high = plan.pack_b ? b >> 16 : b & 0xffffu;
        result[dword] = low | high << 16;
        break;
      }
      default: result[dword] = any ? ~0u : 0; break;
    }
  }
  bool exec_tainted = false;
  if (plan.rule == Rule::scalar_save_exec) {
    result[0] = result[1] = 0;  // EXEC itself is always defined
    exec_tainted = taint(0, 0) != 0;
  }
  const u16 dst = info.dst[0].kind == OperandKind::sgpr ? info.dst[0].reg : kNull;
  for (int dword = 0; dword < dwords; ++dword) {
    if (dst + dword == kExec && dst <= kExec) {
      exec_tainted |= result[dword] != 0;
    } else if (dst != kNull) {
      set_scalar(shadow, static_cast<u16>(dst + dword), result[dword]);
    }
  }
  if (plan.writes_scc) shadow.scc_tainted = any || result[0] || result[1];
  if (exec_tainted) undefined(w, i, -1, "EXEC");
}

bool touches_taint(const WaveShadow& shadow, const InstPlan& plan) {
  u64 hit = 0;
  for (int k = 0; k < 4; ++k) hit |= (plan.reads_v[k] | plan.writes_v[k]) & shadow.tainted_v[k];
  for (int k = 0; k < 2; ++k) hit |= (plan.reads_s[k] | plan.writes_s[k]) & shadow.tainted_s[k];
  return hit != 0 || (shadow.scc_tainted && (plan.reads_scc || plan.writes_scc));
}

}  // namespace

void update_tainted(WaveShadow& shadow, u32 vgpr) {
  u32 all = 0;
  for (const u32 byte : shadow.vector_taint[vgpr]) all |= byte;
  const u64 bit = 1ull << (vgpr & 63);
  if (all) {
    shadow.tainted_v[vgpr / 64] |= bit;
  } else {
    shadow.tainted_v[vgpr / 64] &= ~bit;
  }
}

bool is_tainted(const WaveShadow& shadow, u32 vgpr) { return shadow.tainted_v[vgpr / 64] >> (vgpr & 63) & 1; }

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
  if (plan.rule == Rule::none || !touches_taint(shadow, plan)) return;
  const InstInfo& info = *i.info;
  const u32 exec = w.exec();
  switch (plan.rule) {
    case Rule::memory:
      if (exec) check_address_taint(w, i, info.src[0], exec);
      for (int k = 2; k < 4; ++k)
        if (info.src[k].kind == OperandKind::sgpr) check_address_taint(w, i, info.src[k], ~0u);
      for (int reg = 0; reg < 128; ++reg)
        if (plan.writes_s[reg / 64] >> (reg & 63) & 1) set_scalar(shadow, static_cast<u16>(reg), 0);
      return;
    case Rule::branch_scc:
      if (shadow.scc_tainted) undefined(w, i, -1, "a branch");
      return;
    case Rule::branch_vcc:
      if (scalar_taint(shadow, kVcc)) undefined(w, i, -1, "a branch");
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
