// What the bytes that a vector instruction writes depend on.
#include <string_view>

#include "check/taint.hpp"
#include "isa/op.hpp"
#include "memory/exchange.hpp"

namespace rdna {
namespace {

Bytes spread(u32 lanes) {
  Bytes bytes;
  for (u32& byte : bytes.lanes) byte = lanes;
  return bytes;
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

u32 mask_taint(const WaveShadow& shadow, const Inst& i) { return shadow.scalar_taint[i.smask & 0xff]; }

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

}  // namespace

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

}  // namespace rdna
