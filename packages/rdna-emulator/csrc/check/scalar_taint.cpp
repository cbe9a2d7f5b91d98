// What the bits that a scalar instruction writes depend on.
#include <string_view>

#include "check/taint.hpp"
#include "isa/op.hpp"

namespace rdna {

void propagate_scalar(Wave& w, const Inst& i, const InstPlan& plan) {
  WaveShadow& shadow = *w.shadow;
  const InstInfo& info = *i.info;
  const int dwords = info.dst[0].dwords == 2 ? 2 : 1;
  u32 result[2] = {};
  bool any = plan.reads_scc && shadow.tainted.scc;
  const auto value = [&](int k, int dword) -> u32 {
    const Operand& operand = info.src[k];
    if (operand.kind == OperandKind::constant) return static_cast<u32>(operand.value >> 32 * dword);
    return w.s[(operand.reg + dword) & 0xff];
  };
  const auto taint = [&](int k, int dword) -> u32 {
    const Operand& operand = info.src[k];
    if (operand.kind != OperandKind::sgpr) return 0;
    if (operand.reg == kScc) return shadow.tainted.scc ? 1 : 0;
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
        result[dword] = shadow.tainted.scc ? ~0u : w.scc() ? a : b;
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
  if (plan.writes_scc) shadow.tainted.scc = any || result[0] || result[1];
  if (exec_tainted) undefined(w, i, -1, "EXEC");
}

}  // namespace rdna
