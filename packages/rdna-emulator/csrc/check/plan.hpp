// What the checks need to know of each instruction, worked out once per program.
#pragma once
#include "core/machine.hpp"

namespace rdna {

// How undefined bytes travel through an instruction.
enum class Rule : u8 {
  any,          // every result byte depends on every source byte of the lane
  bytewise,     // byte k of the result depends on byte k of the sources
  bit_and,      // as bytewise, and a zero byte of a known uniform source defines the result
  bit_and_or,   // (a & b) | c
  bit_insert,   // (a & b) | (~a & c)
  upward,       // byte k depends on the bytes up to k: additions, multiplications, left shifts by a lane's amount
  shift_left,   // by src0, the value in src1
  shift_right,
  shift_left_or,
  align_bits,
  align_bytes,
  extract_bits,
  permute_bytes,
  select,       // v_cndmask
  multiply_add_64,
  read_lane,
  read_first_lane,
  write_lane,
  permlane,
  permlane_swap_half,
  lane_exchange,  // ds_bpermute, ds_permute, ds_swizzle
  swap,
  packed,       // two 16-bit halves with op_sel
  pack_halves,  // source k makes half k
  compare,
  compare_exec,
  matrix,
  pair,
  memory,       // the memory hooks do it
  scalar_any,
  scalar_copy,
  scalar_and,
  scalar_and_not,
  scalar_or,
  scalar_or_not,
  scalar_xor,
  scalar_shift_left,
  scalar_shift_right,
  scalar_select,
  scalar_pack,
  scalar_save_exec,
  branch_scc,
  branch_vcc,
  none,
};

// Why an instruction is looked at whatever its registers are.
enum Look : u64 {
  kLookAlways = 1,     // it waits, starts an operation, invalidates, or is a WMMA
  kLookAfterWmma = 2,  // a vector instruction: it ends the hazard
  kLookIfMeasured = 4,
};

struct alignas(64) RegisterSet {
  u64 v[4] = {}, s[2] = {};
  u64 scc = 0;   // 0 or 1
  u64 look = 0;  // Look bits: of the instruction, or those that the wave looks at now
};

using RegisterWords = u64 __attribute__((ext_vector_type(8)));

// Bit k: word k of `a` has something in common with one of the others.
RDNA_INLINE u32 common_words(const RegisterSet& a, const RegisterSet& b, const RegisterSet& c) {
  const auto words = [](const RegisterSet& set) RDNA_LAMBDA_INLINE { return bits<RegisterWords>(set); };
  using Flags = bool __attribute__((ext_vector_type(8)));
  return bits<u8>(convert<Flags>((words(a) & (words(b) | words(c))) != 0u));
}
constexpr u32 kRegisterWords = 0x7f;

struct WaitLimit {
  u8 vm = 0xff, lgkm = 0xff, vs = 0xff;  // 0xff: no limit
  bool any() const { return (vm & lgkm & vs) != 0xff; }
};

constexpr u16 kNoMemo = 0xffff;

struct InstPlan {
  u64 reads_v[4] = {}, writes_v[4] = {};
  u64 reads_s[2] = {}, writes_s[2] = {};
  u64 waits_v[4] = {}, waits_s[2] = {};  // what no outstanding load may still write
  u64 matrix_inputs[4] = {};  // registers of A and B
  Rule rule = Rule::any;
  u8 counters = 0;            // CounterBit of the operation that it starts
  bool out_of_order = false;
  bool in_order_load = false; // may follow another load into the same register
  bool reads_scc = false, writes_scc = false;
  bool vector = false;        // VALU: ends the WMMA hazard
  bool matrix = false;
  u8 invalidate = 0;          // 1: gl1, 2: gl0
  bool pack_a = false, pack_b = false;  // scalar_pack: take the high half
  bool guess = false;         // a load whose value a compare-and-swap then confirms
  bool slow = false;          // transcendental or quarter rate
  bool defines = false;       // from defined sources in all lanes come defined results in all bytes, and nothing else
  Rule pair_rules[2] = {};    // VOPD
  WaitLimit wait;
  u16 memo = kNoMemo;         // number of an LDS instruction of one address a lane
};

struct CheckPlan {
  u16 memos = 0;
  std::vector<InstPlan> insts;
  std::vector<RegisterSet> touched;  // read or written, by instruction
};

std::shared_ptr<const CheckPlan> make_check_plan(const Program&);

}  // namespace rdna
