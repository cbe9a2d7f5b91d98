// What stands in the place of a body where nothing can be executed, and the choice of bodies.
#include <cstdio>
#include <vector>

#include "isa/decoding.hpp"

namespace rdna {
namespace {

std::string words_of(const Inst& inst) {
  std::string text;
  char word[16];
  for (int k = 0; k < inst.words; ++k) {
    std::snprintf(word, sizeof word, k ? " %08x" : "%08x", inst.info->raw[k]);
    text += word;
  }
  return text;
}

std::string address_of(const Inst& inst) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", inst.info->address);
  return text;
}

}  // namespace

void trap_unknown(Wave& wave, const Inst& inst) {
  trap(wave, inst, Fault::unknown_instruction, -1,
       "the word " + words_of(inst) + " at text offset " + address_of(inst) + " is no instruction of " + wave.program->target +
           "; the code object is damaged, was made for another target, or jumps into its data");
}

void trap_unserved(Wave& wave, const Inst& inst) {
  trap(wave, inst, Fault::unsupported, -1,
       std::string(inst.info->op->name) + " (" + words_of(inst) + " at text offset " + address_of(inst) +
           ") is an instruction of " + wave.program->target + " that the emulator does not execute");
}

void trap_past_end(Wave& wave, const Inst& inst) {
  trap(wave, inst, Fault::unknown_instruction, -1,
       "execution ran past the end of the text section at " + address_of(inst) + "; a kernel ends with s_endpgm");
}

void trap_bad_branch(Wave& wave, const Inst& inst) {
  trap(wave, inst, Fault::unknown_instruction, -1,
       std::string(inst.info->op->name) + " at text offset " + address_of(inst) +
           " branches outside the text section or into the middle of an instruction");
}

Body body_of_row(const OpInfo* op) {
  static const std::vector<Body> bodies = [] {
    std::vector<Body> rows;
    for (const OpInfo& row : ops()) {
      const Body body = row.has(kUnserved) ? nullptr : body_of(row.name);
      rows.push_back(body ? body : trap_unserved);
    }
    return rows;
  }();
  return bodies[row_of(op)];
}

}  // namespace rdna
