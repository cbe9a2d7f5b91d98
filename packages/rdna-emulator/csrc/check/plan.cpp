#include "check/plan.hpp"

#include <string_view>
#include <unordered_map>

#include "check/shadow.hpp"
#include "isa/op.hpp"

namespace rdna {
namespace {

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> table = {
      {"v_mov_b32", Rule::bytewise},
      {"v_mov_b16", Rule::bytewise},
      {"v_not_b32", Rule::bytewise},
      {"v_or_b32", Rule::bytewise},
      {"v_or3_b32", Rule::bytewise},
      {"v_xor_b32", Rule::bytewise},
      {"v_xnor_b32", Rule::bytewise},
      {"v_xor3_b32", Rule::bytewise},
      {"v_and_b32", Rule::bit_and},
      {"v_and_or_b32", Rule::bit_and_or},
      {"v_bfi_b32", Rule::bit_insert},
      {"v_add_nc_u32", Rule::upward},
      {"v_add3_u32", Rule::upward},
      {"v_xad_u32", Rule::upward},
      {"v_mul_lo_u32", Rule::upward},
      {"v_lshl_add_u32", Rule::upward},
      {"v_add_lshl_u32", Rule::upward},
      {"v_lshlrev_b32", Rule::shift_left},
      {"v_lshlrev_b64", Rule::shift_left},
      {"v_lshrrev_b32", Rule::shift_right},
      {"v_lshrrev_b64", Rule::shift_right},
      {"v_lshl_or_b32", Rule::shift_left_or},
      {"v_alignbit_b32", Rule::align_bits},
      {"v_alignbyte_b32", Rule::align_bytes},
      {"v_bfe_u32", Rule::extract_bits},
      {"v_bfe_i32", Rule::extract_bits},
      {"v_perm_b32", Rule::permute_bytes},
      {"v_cndmask_b32", Rule::select},
      {"v_cndmask_b16", Rule::select},
      {"v_mad_u64_u32", Rule::multiply_add_64},
      {"v_mad_i64_i32", Rule::multiply_add_64},
      {"v_readlane_b32", Rule::read_lane},
      {"v_readfirstlane_b32", Rule::read_first_lane},
      {"v_writelane_b32", Rule::write_lane},
      {"v_permlane16_b32", Rule::permlane},
      {"v_permlanex16_b32", Rule::permlane_swap_half},
      {"v_swap_b32", Rule::swap},
      {"v_swap_b16", Rule::swap},
      {"v_pack_b32_f16", Rule::pack_halves},
      {"v_cvt_pk_rtz_f16_f32", Rule::pack_halves},
      {"v_cvt_pk_norm_i16_f32", Rule::pack_halves},
      {"v_cvt_pk_norm_u16_f32", Rule::pack_halves},
      {"v_cvt_pk_i16_i32", Rule::pack_halves},
      {"v_cvt_pk_u16_u32", Rule::pack_halves},
      {"v_cvt_pk_i16_f32", Rule::pack_halves},
      {"v_cvt_pk_u16_f32", Rule::pack_halves},
      {"ds_bpermute_b32", Rule::lane_exchange},
      {"ds_permute_b32", Rule::lane_exchange},
      {"ds_swizzle_b32", Rule::lane_exchange},
      {"s_mov_b32", Rule::scalar_copy},
      {"s_mov_b64", Rule::scalar_copy},
      {"s_not_b32", Rule::scalar_copy},
      {"s_not_b64", Rule::scalar_copy},
      {"s_and_b32", Rule::scalar_and},
      {"s_and_b64", Rule::scalar_and},
      {"s_and_not1_b32", Rule::scalar_and_not},
      {"s_and_not1_b64", Rule::scalar_and_not},
      {"s_or_b32", Rule::scalar_or},
      {"s_or_b64", Rule::scalar_or},
      {"s_or_not1_b32", Rule::scalar_or_not},
      {"s_or_not1_b64", Rule::scalar_or_not},
      {"s_xor_b32", Rule::scalar_xor},
      {"s_xor_b64", Rule::scalar_xor},
      {"s_xnor_b32", Rule::scalar_xor},
      {"s_xnor_b64", Rule::scalar_xor},
      {"s_lshl_b32", Rule::scalar_shift_left},
      {"s_lshl_b64", Rule::scalar_shift_left},
      {"s_lshr_b32", Rule::scalar_shift_right},
      {"s_lshr_b64", Rule::scalar_shift_right},
      {"s_cselect_b32", Rule::scalar_select},
      {"s_cselect_b64", Rule::scalar_select},
      {"s_pack_ll_b32_b16", Rule::scalar_pack},
      {"s_pack_lh_b32_b16", Rule::scalar_pack},
      {"s_pack_hl_b32_b16", Rule::scalar_pack},
      {"s_pack_hh_b32_b16", Rule::scalar_pack},
      {"s_cbranch_scc0", Rule::branch_scc},
      {"s_cbranch_scc1", Rule::branch_scc},
      {"s_cbranch_vccz", Rule::branch_vcc},
      {"s_cbranch_vccnz", Rule::branch_vcc},
  };
  return table;
}

bool is_vector(Format format) { return format >= Format::vop1 && format <= Format::vopd; }
bool is_memory(Format format) { return format == Format::smem || (format >= Format::ds && format <= Format::mubuf); }

Rule rule_of(const OpInfo& op) {
  const std::string_view name = op.name;
  if (const auto at = rules().find(name); at != rules().end()) return at->second;
  if (is_memory(op.format)) return Rule::memory;
  if (op.cls == OpClass::wmma) return Rule::matrix;
  if (name.starts_with("v_cmpx_")) return Rule::compare_exec;
  if (name.starts_with("v_cmp_")) return Rule::compare;
  if (name.starts_with("v_pk_")) return Rule::packed;
  if (name.find("_saveexec_") != name.npos) return Rule::scalar_save_exec;
  if (is_vector(op.format)) return Rule::any;
  if (op.cls == OpClass::salu) return Rule::scalar_any;
  return Rule::none;
}

void set_range(u64* words, int limit, u16 first, u8 count) {
  for (int reg = first; reg < first + count && reg < limit; ++reg) words[reg / 64] |= 1ull << (reg & 63);
}

void add_operands(InstPlan& plan, const InstInfo& info) {
  for (const Operand& operand : info.src) {
    if (operand.kind == OperandKind::vgpr) set_range(plan.reads_v, 256, operand.reg, operand.dwords);
    if (operand.kind == OperandKind::sgpr && operand.reg == kScc) plan.reads_scc = true;
    if (operand.kind == OperandKind::sgpr) set_range(plan.reads_s, 126, operand.reg, operand.dwords);
  }
  for (const Operand& operand : info.dst) {
    if (operand.kind == OperandKind::vgpr) set_range(plan.writes_v, 256, operand.reg, operand.dwords);
    if (operand.kind == OperandKind::sgpr) set_range(plan.writes_s, 126, operand.reg, operand.dwords);
  }
}

u8 counters_of(const OpInfo& op, const InstInfo& info) {
  const bool returns = op.has(kLoad) || (op.has(kAtomic) && info.dst[0].kind != OperandKind::none);
  const bool writes = op.has(kStore) || op.has(kAtomic);
  switch (op.format) {
    case Format::ds: return kLgkmcnt;
    case Format::smem: return info.dst[0].kind != OperandKind::none ? kLgkmcnt : 0;
    case Format::flat: return returns ? kVmcnt | kLgkmcnt : writes ? kVscnt | kLgkmcnt : 0;
    case Format::global:
    case Format::scratch:
    case Format::mubuf: return returns ? kVmcnt : writes ? kVscnt : 0;
    default: return 0;
  }
}

WaitLimit wait_of(const OpInfo& op, const Inst& i) {
  WaitLimit limit;
  const std::string_view name = op.name;
  const u32 value = i.imm & 0xffffu;
  if (name == "s_waitcnt") {
    limit.vm = static_cast<u8>(value >> 10 & 63), limit.lgkm = static_cast<u8>(value >> 4 & 63);
    if (limit.vm == 63) limit.vm = 0xff;
    if (limit.lgkm == 63) limit.lgkm = 0xff;
  } else if (name == "s_waitcnt_vmcnt") {
    limit.vm = static_cast<u8>(value & 63);
  } else if (name == "s_waitcnt_lgkmcnt") {
    limit.lgkm = static_cast<u8>(value & 63);
  } else if (name == "s_waitcnt_vscnt") {
    limit.vs = static_cast<u8>(value & 63);
  } else if (name == "s_wait_idle") {
    limit.vm = limit.lgkm = limit.vs = 0;
  }
  return limit;
}

bool defines(const InstPlan& plan, const InstInfo& info) {
  if (info.pair) return info.pair->x_info.dst[0].bytes == 4 && info.pair->y_info.dst[0].bytes == 4;
  switch (plan.rule) {
    case Rule::read_lane:
    case Rule::read_first_lane:
    case Rule::write_lane:
    case Rule::swap:
    case Rule::compare:
    case Rule::compare_exec: return false;
    default: return plan.vector && info.dst[0].kind == OperandKind::vgpr && info.dst[0].bytes == 4 && info.dst[1].kind == OperandKind::none;
  }
}

InstPlan plan_of(const Inst& i) {
  InstPlan plan;
  const InstInfo& info = *i.info;
  if (info.op == nullptr) {
    plan.rule = Rule::none;
    return plan;
  }
  const OpInfo& op = *info.op;
  const std::string_view name = op.name;
  add_operands(plan, info);
  plan.reads_scc |= op.has(kReadsScc);
  plan.writes_scc = op.has(kWritesScc);
  if (op.has(kReadsVcc)) set_range(plan.reads_s, 124, kVcc, 1);
  plan.rule = rule_of(op);
  plan.vector = is_vector(op.format);
  plan.matrix = op.cls == OpClass::wmma;
  plan.slow = op.cls == OpClass::trans || op.has(kSlow);
  if (info.pair) {
    add_operands(plan, info.pair->x_info);
    add_operands(plan, info.pair->y_info);
    plan.rule = Rule::pair;
    plan.pair_rules[0] = rule_of(*info.pair->x_info.op);
    plan.pair_rules[1] = rule_of(*info.pair->y_info.op);
    plan.vector = true;
  }
  if (plan.matrix)
    for (int k = 0; k < 2; ++k) set_range(plan.matrix_inputs, 256, info.src[k].reg, info.src[k].dwords);
  plan.defines = defines(plan, info);
  if (plan.rule == Rule::scalar_pack) plan.pack_a = name[7] == 'h', plan.pack_b = name[8] == 'h';
  plan.counters = counters_of(op, info);
  plan.out_of_order = op.format == Format::smem;  // FLAT counts in order since gfx10
  plan.in_order_load = plan.counters != 0 && !plan.out_of_order;
  // A load may follow an outstanding load into the same register: loads of one counter return in order.
  for (int word = 0; word < 4; ++word) plan.waits_v[word] = plan.reads_v[word] | (plan.in_order_load ? 0 : plan.writes_v[word]);
  for (int word = 0; word < 2; ++word) plan.waits_s[word] = plan.reads_s[word] | plan.writes_s[word];
  if (name == "buffer_gl1_inv") plan.invalidate = 1;
  if (name == "buffer_gl0_inv") plan.invalidate = 2;
  if (op.cls == OpClass::wait) plan.wait = wait_of(op, i);
  return plan;
}

// Whether the load begins a compare-and-swap loop: what it brings is what the next cmpswap compares with. Compilers load
// there as if no other wave wrote, since a value that is out of date only costs a round.
bool is_guess(const Program& program, const CheckPlan& plan, std::size_t k) {
  constexpr std::size_t kDistance = 64;
  const InstInfo& load = *program.insts[k].info;
  if (load.op == nullptr || !load.op->has(kLoad) || load.op->format == Format::ds || load.dst[0].dwords > 2) return false;
  Operand value[2] = {load.dst[0], load.dst[0]};  // where each dword of it is now
  const u32 dwords = value[0].dwords;
  value[1].reg = static_cast<u16>(value[0].reg + dwords - 1);
  for (std::size_t next = k + 1; next < program.insts.size() && next <= k + kDistance; ++next) {
    const InstInfo& info = *program.insts[next].info;
    if (info.op == nullptr) return false;
    const std::string_view name = info.op->name;
    if (name.find("_atomic_cmpswap_") != name.npos) {  // its data are the new value, then the comparand
      const u32 comparand = info.src[1].reg + dwords;
      return info.src[1].dwords == 2 * dwords && value[0].kind == OperandKind::vgpr && value[0].reg == comparand &&
             value[1].kind == OperandKind::vgpr && value[1].reg == comparand + dwords - 1;
    }
    for (Operand& dword : value) {
      const bool vgpr = dword.kind == OperandKind::vgpr;
      const bool copied = name == "v_mov_b32" && info.src[0].kind == dword.kind && info.src[0].reg == dword.reg;
      if (copied) {
        dword = info.dst[0];
      } else if ((vgpr ? plan.insts[next].writes_v : plan.insts[next].writes_s)[dword.reg / 64] >> (dword.reg & 63) & 1) {
        return false;
      }
    }
  }
  return false;
}

RegisterSet touched_by(const InstPlan& plan) {
  RegisterSet set;
  for (int word = 0; word < 4; ++word) set.v[word] = plan.reads_v[word] | plan.writes_v[word];
  for (int word = 0; word < 2; ++word) set.s[word] = plan.reads_s[word] | plan.writes_s[word];
  set.scc = plan.reads_scc || plan.writes_scc;
  const bool always = plan.wait.any() || plan.counters || plan.invalidate || plan.matrix;
  set.look = kLookIfMeasured | (always ? kLookAlways : 0) | (plan.vector ? kLookAfterWmma : 0);
  return set;
}

constexpr u16 kMostMemos = 256;  // 32 KB a wave

}  // namespace

std::shared_ptr<const CheckPlan> make_check_plan(const Program& program) {
  auto plan = std::make_shared<CheckPlan>();
  plan->insts.reserve(program.insts.size());
  for (const Inst& i : program.insts) plan->insts.push_back(plan_of(i));
  for (std::size_t k = 0; k < plan->insts.size(); ++k) {
    const OpInfo* op = program.insts[k].info->op;
    const bool one_address = op != nullptr && op->format == Format::ds && std::string_view(op->name).find("2addr") == std::string_view::npos;
    if (one_address && plan->memos < kMostMemos) plan->insts[k].memo = plan->memos++;
  }
  for (std::size_t k = 0; k < plan->insts.size(); ++k) plan->insts[k].guess = is_guess(program, *plan, k);
  for (const InstPlan& inst : plan->insts) plan->touched.push_back(touched_by(inst));
  return plan;
}

}  // namespace rdna
