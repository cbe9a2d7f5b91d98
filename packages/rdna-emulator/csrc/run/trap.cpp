// Traps: where they happened, in words.
#include <algorithm>
#include <cstdio>

#include "isa/disassemble.hpp"
#include "run/launch.hpp"

namespace rdna {
namespace {

// The half of a VOPD instruction stands for the whole.
const Inst& whole(const Wave& w, const Inst& i) {
  const std::vector<Inst>& insts = w.program->insts;
  const bool in_program = &i >= insts.data() && &i < insts.data() + insts.size();
  return in_program || w.pc == insts.data() ? i : w.pc[-1];
}

std::string place_of(const Program& program, u32 address) {
  const Symbol* nearest = nullptr;
  for (const Symbol& symbol : program.symbols) {
    if (symbol.address <= address && (!nearest || symbol.address > nearest->address)) nearest = &symbol;
  }
  char text[32];
  if (!nearest) return "";
  std::snprintf(text, sizeof text, "+0x%x", address - nearest->address);
  return " (" + nearest->name + text + ")";
}

}  // namespace

std::string describe_trap(const Wave& w, const Inst& i, int lane, const std::string& message) {
  const Workgroup& group = *w.group;
  const Inst& inst = whole(w, i);
  char place[160];
  std::snprintf(place, sizeof place, "workgroup (%u, %u, %u), wave %u%s%s, pc 0x%x", group.id.x, group.id.y, group.id.z,
                w.index, lane < 0 ? "" : ", lane ", lane < 0 ? "" : std::to_string(lane).c_str(), inst.info->address);
  return message + "\n  in kernel " + group.launch->kernel->name + ", " + place +
         place_of(*w.program, inst.info->address) + ": " + disassemble(inst);
}

void trap(Wave& w, const Inst& i, Fault fault, int lane, const std::string& message) {
  throw TrapError{fault, describe_trap(w, i, lane, message)};
}

}  // namespace rdna
