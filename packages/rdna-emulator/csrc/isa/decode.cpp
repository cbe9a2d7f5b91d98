#include "isa/decode.hpp"

#include <cstring>
#include <stdexcept>

#include "isa/decoding.hpp"

namespace rdna {
namespace {

void decode_vector_family(Decoding& d) {  // the first bit is 0
  const u32 opcode = d.field(0, 25, 6);
  opcode == 0x3f ? decode_vop1(d) : opcode == 0x3e ? decode_vopc(d) : decode_vop2(d);
}

void decode_scalar_family(Decoding& d) {  // the first bits are 10
  const u32 opcode = d.field(0, 23, 7);
  if (opcode == 0x7d) {
    decode_sop1(d);
  } else if (opcode == 0x7e) {
    decode_sopc(d);
  } else if (opcode == 0x7f) {
    decode_sopp(d);
  } else if (d.field(0, 28, 4) == 0xb) {
    decode_sopk(d);
  } else {
    decode_sop2(d);
  }
}

void decode_one(Decoding& d) {
  const u32 encoding = d.field(0, 26, 6);
  if (encoding < 0x20) return decode_vector_family(d);
  if (encoding < 0x30) return decode_scalar_family(d);
  if (d.left < 2 && encoding != 0x33) {
    d.valid = false;
    return;
  }
  switch (encoding) {
    case 0x32: return decode_vopd(d);
    case 0x33:
      switch (d.field(0, 24, 2)) {
        case 0: if (d.left >= 2) return decode_vop3p(d); break;
        case 1: return decode_unserved(d, Format::vinterp);
        case 2: return decode_unserved(d, Format::ldsdir);
        default: break;
      }
      break;
    case 0x35: return decode_vop3(d);
    case 0x36: return decode_ds(d);
    case 0x37: return decode_flat(d);
    case 0x38: return decode_mubuf(d);
    case 0x3a: return decode_unserved(d, Format::mtbuf);
    case 0x3c: return decode_unserved(d, Format::mimg);
    case 0x3d: return decode_smem(d);
    case 0x3e: return decode_unserved(d, Format::exp);
    default: break;
  }
  d.valid = false;
}

void set_unknown(Inst& inst, InstInfo& info, Body body) {
  const u32 address = info.address;
  inst = Inst{};
  info = InstInfo{};
  info.address = address;
  inst.fn = inst.body = body;
}

// A branch to where no instruction begins goes to an entry of its own past the end, which traps in the branch's name.
void resolve_branches(Program& program) {
  const std::size_t count = program.insts.size();
  for (std::size_t k = 0; k < count; ++k) {
    const InstInfo& info = program.infos[k];
    if (!info.op || !info.op->has(kBranches)) continue;
    const i64 word = i64{info.address} / 4 + program.insts[k].words + static_cast<i32>(program.insts[k].imm);
    const bool inside = word >= 0 && word < static_cast<i64>(program.index_of_word.size());
    i32 target = inside ? program.index_of_word[word] : -1;
    if (target < 0) {
      target = static_cast<i32>(program.insts.size());
      Inst nowhere = program.insts[k];
      nowhere.fn = nowhere.body = trap_bad_branch;
      program.insts.push_back(nowhere);
      program.infos.push_back(InstInfo(info));
    }
    program.insts[k].target = target;
  }
}

}  // namespace

Program decode_program(const std::string& target, std::span<const u8> text, std::vector<Symbol> symbols, u64 text_base) {
  const TargetMask mask = target_of(target);
  if (!mask) throw std::invalid_argument("unknown target '" + target + "'; the emulator decodes gfx1100 and gfx1151");
  if (text.size() % 4) {
    throw std::invalid_argument("the text section has " + std::to_string(text.size()) + " bytes, which are no whole dwords");
  }
  Program program;
  program.target = target;
  program.text_base = text_base;
  program.symbols = std::move(symbols);
  const std::size_t count = text.size() / 4;
  program.text.resize(count);
  if (count) std::memcpy(program.text.data(), text.data(), text.size());
  program.index_of_word.assign(count + 1, -1);
  program.insts.reserve(count + 1);
  program.infos.reserve(count + 1);

  ConstantPool pool(program.constants);
  for (std::size_t word = 0; word < count;) {
    program.index_of_word[word] = static_cast<i32>(program.insts.size());
    Inst& inst = program.insts.emplace_back();
    InstInfo& info = program.infos.emplace_back();
    info.address = static_cast<u32>(word * 4);
    Decoding decoding{mask, program.text.data() + word, count - word, program, pool, inst, info};
    decode_one(decoding);
    if (!decoding.valid) set_unknown(inst, info, trap_unknown);
    inst.words = static_cast<u8>(decoding.valid ? decoding.words : 1);
    std::memcpy(info.raw, program.text.data() + word, 4 * inst.words);
    word += inst.words;
  }
  Inst& last = program.insts.emplace_back();
  InstInfo& last_info = program.infos.emplace_back();
  last_info.address = static_cast<u32>(text.size());
  set_unknown(last, last_info, trap_past_end);
  program.index_of_word[count] = static_cast<i32>(program.insts.size() - 1);
  resolve_branches(program);
  for (std::size_t k = 0; k < program.insts.size(); ++k) program.insts[k].info = &program.infos[k];
  return program;
}

}  // namespace rdna
