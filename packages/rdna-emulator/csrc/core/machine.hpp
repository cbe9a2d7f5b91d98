// The state of a running wave and the decoded instruction: what every handler sees.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/vectors.hpp"

namespace rdna {

struct Wave;
struct Workgroup;
struct Inst;
struct InstInfo;
struct OpInfo;
struct Program;
struct WaveShadow;
struct CheckPlan;

using Body = void (*)(Wave&, const Inst&);

// Scalar operand numbers of the gfx11 encodings; `Wave::s` is indexed by them.
enum ScalarRegister : u16 {
  kVcc = 106,
  kTtmp0 = 108,
  kNull = 124,
  kM0 = 125,
  kExec = 126,
  kScc = 253,
};

// Rows of `Wave::v` past the 256 architectural registers.
enum TemporaryRow : u16 {
  kSourceRows = 256,  // source k, prepared by the prologue: rows 256 + 2k and 256 + 2k + 1
  kPairRow = 264,     // result of the first half of a VOPD pair
  kRows = 266,
};

enum InstFlag : u8 {
  kDestinationHigh = 1,  // a 16-bit result goes to the high half of the register
  kClamp = 2,
  kEndsProgram = 4,
};

// Hot part of an instruction: 64 bytes. `fn` is what the loop calls: the body itself, or a prologue that prepares
// the sources (scalars spread over lanes, negation, halves, DPP) in the temporary rows and then calls `body`.
struct alignas(64) Inst {
  Body fn;
  Body body;
  const InstInfo* info;
  i32 src[3];   // VALU: byte offset of the operand's first row from the wave, or -1 - byte offset into the constants.
                // SALU: the same for the scalar itself (a 64-bit constant is 8 contiguous bytes).
  u16 dst;      // VGPR number, or scalar number where the result is scalar
  u16 sdst;     // scalar number of a second result (carry out, compare mask, div_scale)
  u16 smask;    // scalar number of a lane-mask source (cndmask, carry in)
  u16 op;       // row of the opcode table
  u32 imm;      // literal, immediate or memory offset, sign-extended where the field is signed
  i32 target;   // index of the instruction that a direct branch goes to
  u8 words;     // length in dwords
  u8 flags;     // InstFlag
};

enum class OperandKind : u8 { none, vgpr, sgpr, constant };

// One operand as the encoding gives it; what the prologue, the disassembler and the checks read.
struct Operand {
  OperandKind kind = OperandKind::none;
  u8 dwords = 1;      // registers that it spans
  u8 bytes = 4;       // bytes used of the first register (1, 2 or 4)
  bool high = false;  // a 16-bit operand in the high half
  bool negate = false;
  bool absolute = false;
  u16 reg = 0;        // register number; for scalars the operand number
  u64 value = 0;      // a constant, already expanded to the operand's type
};

struct DppControl {
  enum class Kind : u8 { none, dpp16, dpp8 } kind = Kind::none;
  u32 control = 0;  // dpp16: the 9-bit dpp_ctrl; dpp8: eight 3-bit selectors
  u8 row_mask = 0xf;
  u8 bank_mask = 0xf;
  bool bound_control = false;
  bool fetch_inactive = false;
};

struct Pair;

// Cold part: everything else that the encoding says.
struct InstInfo {
  const OpInfo* op = nullptr;  // null: the encoding is not known, executing it traps
  u32 address = 0;             // byte offset from the start of the text section
  u32 raw[4] = {};
  Operand dst[2];
  Operand src[4];              // memory: 0 address, 1 data, 2 second data or scalar base, 3 scalar offset
  DppControl dpp;
  u8 op_sel = 0, op_sel_hi = 0, neg_lo = 0, neg_hi = 0, omod = 0;
  bool clamp = false;
  bool glc = false, slc = false, dlc = false;
  u8 offset0 = 0, offset1 = 0;  // DS
  i32 offset = 0;               // SMEM, FLAT family, MUBUF
  bool offen = false, idxen = false, tfe = false;
  bool gds = false;
  const Pair* pair = nullptr;   // VOPD
};

// The two halves of a VOPD instruction, each an instruction of its own; `x` writes kPairRow.
struct Pair {
  Inst x, y;
  InstInfo x_info, y_info;
};

struct Symbol {
  u32 address;  // byte offset from the start of the text section
  u32 size;
  std::string name;
};

// A constant in every lane.
struct alignas(128) ConstantRow {
  u32 lanes[kLanes];
};

// A decoded text section. Instructions stand in address order; `index_of_word` maps dword offsets to them (-1: inside one).
// The last entry of `index_of_word` is the end of the text: the instruction there traps, like those that may follow it.
struct Program {
  std::string target;
  u64 text_base = 0;  // device address of the text section, for s_getpc
  std::vector<u32> text;
  std::vector<Inst> insts;
  std::vector<InstInfo> infos;
  std::vector<std::unique_ptr<Pair>> pairs;
  std::vector<ConstantRow> constants;  // `Wave::constants` is their address
  std::vector<i32> index_of_word;
  std::vector<Symbol> symbols;
  mutable std::shared_ptr<const CheckPlan> check_plan;  // made when checks are first on
};

enum class WaveState : u8 { running, barrier, ended };

// One wave. The vector registers come first: row r is at byte offset r * 128.
struct alignas(128) Wave {
  u32 v[kRows][kLanes];
  u32 s[256];
  const Inst* pc = nullptr;
  const u8* constants = nullptr;
  const Program* program = nullptr;
  Workgroup* group = nullptr;
  u64* executed = nullptr;       // executions per instruction, of the worker that runs the wave
  WaveShadow* shadow = nullptr;  // check state; null when checks are off
  u32 mode = 0;
  u32 index = 0;                 // of the wave in its workgroup
  WaveState state = WaveState::running;
  bool leave = false;            // set by a handler: give the loop back to the scheduler (barrier, end, sleep)
  u32 turn = 0;                  // branches backwards that it may still take before the scheduler looks at it

  u32 exec() const { return s[kExec]; }
  u32 scc() const { return s[kScc]; }

  RDNA_INLINE const void* source(const Inst& i, int k) const {
    const i32 offset = i.src[k];
    return offset >= 0 ? reinterpret_cast<const u8*>(this) + offset : constants + (-1 - offset);
  }
  template <class T>
  RDNA_INLINE T vector_source(const Inst& i, int k) const {  // 32-bit lanes
    static_assert(sizeof(T) == 128);
    return *static_cast<const T*>(source(i, k));
  }
  RDNA_INLINE u64x vector_source64(const Inst& i, int k) const {
    const u32x* rows = static_cast<const u32x*>(source(i, k));
    return convert<u64x>(rows[0]) | convert<u64x>(rows[1]) << 32;
  }
  RDNA_INLINE u16x vector_source16(const Inst& i, int k) const {  // the low half: the prologue has moved a high one down
    return convert<u16x>(vector_source<u32x>(i, k));
  }
  u32 scalar_source(const Inst& i, int k) const { return *static_cast<const u32*>(source(i, k)); }
  u64 scalar_source64(const Inst& i, int k) const {
    u64 value;
    std::memcpy(&value, source(i, k), 8);
    return value;
  }

  u32x& row(int r) { return *reinterpret_cast<u32x*>(v[r]); }

  template <class T>
  RDNA_INLINE void write(u16 r, T result) {  // active lanes only
    static_assert(sizeof(T) == 128);
    const u32 active = exec();
    u32x& target = row(r);
    target = active == ~0u ? bits<u32x>(result) : bits<u32x>(lane_mask(active) ? bits<u32x>(result) : target);
  }
  template <class T>
  RDNA_INLINE void write64(u16 r, T result) {
    const u64x value = bits<u64x>(result);
    write(r, convert<u32x>(value));
    write(r + 1, convert<u32x>(value >> 32));
  }
  template <class T>
  RDNA_INLINE void write16(const Inst& i, T result) {  // keeps the other half
    const u32x value = convert<u32x>(bits<u16x>(result));
    const u32x old = row(i.dst);
    write(i.dst, i.flags & kDestinationHigh ? (old & 0xffffu) | value << 16 : (old & 0xffff0000u) | value);
  }
  void write_scalar(u16 r, u32 value) { s[r] = value; }
  void write_scalar64(u16 r, u64 value) {
    s[r] = static_cast<u32>(value);
    s[r + 1] = static_cast<u32>(value >> 32);
  }
  void set_scc(bool value) { s[kScc] = value; }
};

// Bodies register under their mnemonic (LLVM's gfx11 spelling without _e32, _e64, _dpp); the decoder looks them up by it.
struct Registration {
  struct Entry {
    const char* name;
    Body body;
  };
  Registration(std::initializer_list<Entry> entries);
};
Body body_of(const char* mnemonic);  // null when no body is registered

// Prologues (valu/prologue.cpp); each ends by calling `i.body`.
void splat_scalars(Wave&, const Inst&);    // scalar sources to rows
void prepare_sources(Wave&, const Inst&);  // the same, and negation, absolute value, halves, DPP, packed selectors, clamp
void run_pair(Wave&, const Inst&);         // VOPD

// Stops the launch: the message names what is wrong; the run adds kernel, workgroup, wave, pc and instruction.
enum class Fault : u8 {
  unknown_instruction, unsupported, memory, misaligned, check, spin, divergence, interrupted,
};
[[noreturn]] void trap(Wave&, const Inst&, Fault, int lane, const std::string& message);

}  // namespace rdna
