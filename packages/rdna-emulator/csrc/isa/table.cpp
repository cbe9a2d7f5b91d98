#include <array>
#include <vector>

#include "isa/op.hpp"

namespace rdna {
namespace {

struct Row {
  u16 opcode;
  const char* name;
  OpClass cls;
  OperandType dst[2];
  OperandType src[4];
  u32 flags = 0;
  u8 targets = kAllTargets;
};

using enum OpClass;
using enum OperandType;

// Columns: opcode, mnemonic, class, results, sources, flags, targets.
constexpr Row kSop1[] = {
#include "isa/table/sop1.inc"
};
constexpr Row kSop2[] = {
#include "isa/table/sop2.inc"
};
constexpr Row kSopc[] = {
#include "isa/table/sopc.inc"
};
constexpr Row kSopk[] = {
#include "isa/table/sopk.inc"
};
constexpr Row kSopp[] = {
#include "isa/table/sopp.inc"
};
constexpr Row kSmem[] = {
#include "isa/table/smem.inc"
};
constexpr Row kVop1[] = {
#include "isa/table/vop1.inc"
};
constexpr Row kVop2[] = {
#include "isa/table/vop2.inc"
};
constexpr Row kVopc[] = {
#include "isa/table/vopc.inc"
};
constexpr Row kVop3[] = {
#include "isa/table/vop3.inc"
};
constexpr Row kVop3p[] = {
#include "isa/table/vop3p.inc"
};
constexpr Row kVopd[] = {
#include "isa/table/vopd.inc"
};
constexpr Row kDs[] = {
#include "isa/table/ds.inc"
};
constexpr Row kFlat[] = {
#include "isa/table/flat.inc"
};
constexpr Row kGlobal[] = {
#include "isa/table/global.inc"
};
constexpr Row kScratch[] = {
#include "isa/table/scratch.inc"
};
constexpr Row kMubuf[] = {
#include "isa/table/mubuf.inc"
};
constexpr Row kMtbuf[] = {
#include "isa/table/mtbuf.inc"
};
constexpr Row kMimg[] = {
#include "isa/table/mimg.inc"
};
constexpr Row kExp[] = {
#include "isa/table/exp.inc"
};
constexpr Row kLdsdir[] = {
#include "isa/table/ldsdir.inc"
};
constexpr Row kVinterp[] = {
#include "isa/table/vinterp.inc"
};

// In the order of Format.
constexpr std::span<const Row> kRowsOf[kFormats] = {
    kSop1, kSop2, kSopc, kSopk, kSopp, kSmem, kVop1, kVop2, kVopc, kVop3, kVop3p, kVopd,
    kDs, kFlat, kGlobal, kScratch, kMubuf, kMtbuf, kMimg, kExp, kLdsdir, kVinterp,
};

constexpr u32 kOpcodes = 1024;

struct Table {
  std::vector<OpInfo> ops;
  std::array<std::array<i16, kOpcodes>, kFormats> row;

  Table() {
    for (int f = 0; f < kFormats; ++f) {
      row[f].fill(-1);
      for (const Row& r : kRowsOf[f]) {
        row[f][r.opcode] = static_cast<i16>(ops.size());
        ops.push_back({r.name, static_cast<Format>(f), r.cls, r.targets, r.opcode, r.flags,
                       {r.dst[0], r.dst[1]}, {r.src[0], r.src[1], r.src[2], r.src[3]}});
      }
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

std::span<const OpInfo> ops() { return table().ops; }

const OpInfo* find_op(TargetMask target, Format format, u32 opcode) {
  const i16 row = opcode < kOpcodes ? table().row[static_cast<int>(format)][opcode] : i16{-1};
  if (row < 0) return nullptr;
  const OpInfo* op = &table().ops[row];
  return op->targets & target ? op : nullptr;
}

const OpInfo* find_vop3(TargetMask target, u32 opcode) {
  const OpInfo* op = opcode < 0x100   ? find_op(target, Format::vopc, opcode)
                     : opcode < 0x180 ? find_op(target, Format::vop2, opcode - 0x100)
                     : opcode < 0x200 ? find_op(target, Format::vop1, opcode - 0x180)
                                      : find_op(target, Format::vop3, opcode);
  return op && op->has(kOneForm) ? nullptr : op;
}

TargetMask target_of(std::string_view name) {
  return name == "gfx1100" ? kGfx1100 : name == "gfx1151" ? kGfx1151 : TargetMask{};
}

const char* name_of(OpClass cls) {
  static constexpr const char* kNames[] = {
      "valu", "trans", "wmma", "salu", "smem", "lds", "global_load", "global_store", "atomic", "flat", "scratch",
      "branch", "wait", "barrier", "other",
  };
  return kNames[static_cast<int>(cls)];
}

}  // namespace rdna
