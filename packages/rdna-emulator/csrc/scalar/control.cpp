// Branches, the program counter, waits, messages, hardware registers and the end of a wave.
#include "run/launch.hpp"

namespace rdna {
namespace {

RDNA_INLINE void jump(Wave& w, const Inst& i, const Inst* target) {
  w.pc = target;
  if (target <= &i && --w.turn == 0) [[unlikely]] end_turn(w, i);
}

RDNA_INLINE void branch_if(Wave& w, const Inst& i, bool taken) {
  if (taken) jump(w, i, w.group->insts + i.target);
}

void branch(Wave& w, const Inst& i) { branch_if(w, i, true); }
void cbranch_scc0(Wave& w, const Inst& i) { branch_if(w, i, !w.scc()); }
void cbranch_scc1(Wave& w, const Inst& i) { branch_if(w, i, w.scc()); }
void cbranch_vccz(Wave& w, const Inst& i) { branch_if(w, i, !w.s[kVcc]); }
void cbranch_vccnz(Wave& w, const Inst& i) { branch_if(w, i, w.s[kVcc]); }
void cbranch_execz(Wave& w, const Inst& i) { branch_if(w, i, !w.exec()); }
void cbranch_execnz(Wave& w, const Inst& i) { branch_if(w, i, w.exec()); }

u64 next_address(const Wave& w, const Inst& i) { return w.program->text_base + i.info->address + 4u * i.words; }

const Inst* instruction_at(Wave& w, const Inst& i, u64 address) {
  const Program& program = *w.program;
  const u64 offset = address - program.text_base;
  const i64 index = offset % 4 == 0 && offset / 4 < program.index_of_word.size() ? program.index_of_word[offset / 4] : -1;
  if (index < 0) {
    char text[120];
    std::snprintf(text, sizeof text, "jump to 0x%llx, which is no instruction of the code object",
                  static_cast<unsigned long long>(address));
    trap(w, i, Fault::unknown_instruction, -1, text);
  }
  return program.insts.data() + index;
}

void getpc(Wave& w, const Inst& i) { w.write_scalar64(i.dst, next_address(w, i)); }
void setpc(Wave& w, const Inst& i) { jump(w, i, instruction_at(w, i, w.scalar_source64(i, 0))); }
void swappc(Wave& w, const Inst& i) {
  const u64 target = w.scalar_source64(i, 0);
  w.write_scalar64(i.dst, next_address(w, i));
  jump(w, i, instruction_at(w, i, target));
}
void call(Wave& w, const Inst& i) {
  w.write_scalar64(i.dst, next_address(w, i));
  branch(w, i);
}

// Waits, hints and priorities: execution is in order and complete, so there is nothing to do.
void nothing(Wave&, const Inst&) {}

// Others go on. What sleeps again and again is soon looked at for a spin.
void sleep(Wave& w, const Inst&) {
  w.leave = true;
  w.turn = w.turn > 64 ? w.turn - 64 : 1;
}

void barrier(Wave& w, const Inst&) {
  w.state = WaveState::barrier;
  w.leave = true;
}

void end_program(Wave& w, const Inst&) {
  w.state = WaveState::ended;
  w.leave = true;
}

void stop(Wave& w, const Inst& i) {
  const u32 number = i.imm & 0xff;
  trap(w, i, Fault::unsupported, -1,
       "s_trap " + std::to_string(number) +
           (number == 2 ? ": the kernel stops itself (abort, __builtin_trap or a failed assertion)" : ""));
}

void code_end(Wave& w, const Inst& i) {
  trap(w, i, Fault::unknown_instruction, -1, "execution ran into the padding after the code");
}

void sendmsg(Wave& w, const Inst& i) {
  const u32 message = i.imm & 0xff;
  if (message == 3) return;  // dealloc_vgprs: the wave needs its registers no more
  trap(w, i, Fault::unsupported, -1, "s_sendmsg " + std::to_string(message) + ": only dealloc_vgprs (3) is executed");
}

constexpr u32 kMessageRealtime = 0x83;

u64 tick(Wave& w) { return w.group->worker->clock += 64; }

void sendmsg_rtn_b64(Wave& w, const Inst& i) {
  if (i.imm != kMessageRealtime) {
    trap(w, i, Fault::unsupported, -1, "s_sendmsg_rtn_b64 " + std::to_string(i.imm) + ": only the clock (0x83) is executed");
  }
  w.write_scalar64(i.dst, tick(w));
}
void sendmsg_rtn_b32(Wave& w, const Inst& i) {
  if (i.imm != kMessageRealtime) {
    trap(w, i, Fault::unsupported, -1, "s_sendmsg_rtn_b32 " + std::to_string(i.imm) + ": only the clock (0x83) is executed");
  }
  w.write_scalar(i.dst, static_cast<u32>(tick(w)));
}

enum HardwareRegister : u32 { kMode = 1, kShaderCycles = 29 };

struct RegisterField {
  u32 number, offset, size;
  explicit RegisterField(u32 immediate)
      : number(immediate & 63), offset(immediate >> 6 & 31), size((immediate >> 11 & 31) + 1) {}
  u32 mask() const { return size == 32 ? ~0u : ((1u << size) - 1) << offset; }
};

void getreg(Wave& w, const Inst& i) {
  const RegisterField field(i.imm);
  u32 value = 0;
  switch (field.number) {
    case kMode: value = w.mode; break;
    case kShaderCycles: value = static_cast<u32>(tick(w)) & 0xfffff; break;
    default:
      trap(w, i, Fault::unsupported, -1,
           "s_getreg of hardware register " + std::to_string(field.number) +
               ": only MODE (1) and SHADER_CYCLES (29) are executed");
  }
  w.write_scalar(i.dst, (value & field.mask()) >> field.offset);
}

constexpr u32 kExceptionBits = 0x1ff000;  // which exceptions would trap: none is ever raised

// Rounding (bits 0 to 3), denormals (4 to 7) and the clamp, NaN and overflow rules are fixed at the launch: the vector
// operations know no others.
void set_mode(Wave& w, const Inst& i, u32 mask, u32 value) {
  const u32 changed = (w.mode & ~mask) | (value & mask);
  if ((changed ^ w.mode) & ~kExceptionBits) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "MODE is set to 0x%x: only 0x%x, rounding to nearest even with denormals kept, is executed", changed,
                  w.mode);
    trap(w, i, Fault::unsupported, -1, text);
  }
  w.mode = changed;
}

void setreg(Wave& w, const Inst& i) {
  const RegisterField field(i.imm);
  if (field.number != kMode) {
    trap(w, i, Fault::unsupported, -1,
         "s_setreg of hardware register " + std::to_string(field.number) + ": only MODE (1) is executed");
  }
  set_mode(w, i, field.mask(), w.scalar_source(i, 0) << field.offset);
}

void round_mode(Wave& w, const Inst& i) { set_mode(w, i, 0xf, i.imm); }
void denorm_mode(Wave& w, const Inst& i) { set_mode(w, i, 0xf0, i.imm << 4); }

const Registration kBranches({
    {"s_branch", branch},
    {"s_cbranch_scc0", cbranch_scc0},
    {"s_cbranch_scc1", cbranch_scc1},
    {"s_cbranch_vccz", cbranch_vccz},
    {"s_cbranch_vccnz", cbranch_vccnz},
    {"s_cbranch_execz", cbranch_execz},
    {"s_cbranch_execnz", cbranch_execnz},
    {"s_cbranch_cdbgsys", nothing},  // no debugger is attached: never taken
    {"s_cbranch_cdbguser", nothing},
    {"s_cbranch_cdbgsys_or_user", nothing},
    {"s_cbranch_cdbgsys_and_user", nothing},
    {"s_getpc_b64", getpc},
    {"s_setpc_b64", setpc},
    {"s_swappc_b64", swappc},
    {"s_call_b64", call},
});

const Registration kWaits({
    {"s_waitcnt", nothing},
    {"s_waitcnt_depctr", nothing},
    {"s_waitcnt_vscnt", nothing},
    {"s_waitcnt_vmcnt", nothing},
    {"s_waitcnt_expcnt", nothing},
    {"s_waitcnt_lgkmcnt", nothing},
    {"s_wait_idle", nothing},
    {"s_wait_event", nothing},
    {"s_nop", nothing},
    {"s_delay_alu", nothing},
    {"s_clause", nothing},
    {"s_setprio", nothing},
    {"s_set_inst_prefetch_distance", nothing},
    {"s_icache_inv", nothing},
    {"s_incperflevel", nothing},
    {"s_decperflevel", nothing},
    {"s_version", nothing},
    {"s_ttracedata", nothing},
    {"s_ttracedata_imm", nothing},
    {"s_wakeup", nothing},
    {"s_sleep", sleep},
    {"s_barrier", barrier},
});

const Registration kOthers({
    {"s_endpgm", end_program},
    {"s_endpgm_saved", end_program},
    {"s_trap", stop},
    {"s_code_end", code_end},
    {"s_sendmsg", sendmsg},
    {"s_sendmsg_rtn_b32", sendmsg_rtn_b32},
    {"s_sendmsg_rtn_b64", sendmsg_rtn_b64},
    {"s_getreg_b32", getreg},
    {"s_setreg_b32", setreg},
    {"s_setreg_imm32_b32", setreg},
    {"s_round_mode", round_mode},
    {"s_denorm_mode", denorm_mode},
});

}  // namespace
}  // namespace rdna
