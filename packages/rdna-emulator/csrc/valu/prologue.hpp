// Choice of the prologue that prepares an instruction's vector sources; the decoder calls it once per instruction.
#pragma once
#include "core/machine.hpp"

namespace rdna {

// How the encoding's modifiers apply to an operation's sources.
enum class SourceForm : u8 {
  plain,       // negate, absolute and high of each operand, by its width
  signs,       // the same where no operand is of 16 bits
  packed,      // op_sel and op_sel_hi choose the halves, neg_lo and neg_hi negate them
  packed_dot,  // the same for sources 0 and 1; source 2 is one f32, negated by neg_lo
  half_dot,    // plain, but signs of sources 0 and 1 are those of both halves
  mix,         // f32, or f16 (op_sel_hi) of either half (op_sel); neg_lo negates, neg_hi is the absolute value
  whole,       // no modifiers but DPP (dot4, dot8, v_pk_fmac_f16)
  untouched,   // the body reads scalars and modifiers from InstInfo itself (WMMA, lane reads and writes, permlane)
};
SourceForm source_form_of(const char* mnemonic);

// To be called for every VALU instruction when `body`, `dst`, `sdst`, `smask`, `flags` and `info` are set, with `src`
// direct: the register row of a VGPR, the constant's row, anything for an SGPR. Sets `fn`, and in `src` the temporary row of
// every source that has to be prepared. Not for VOPD pairs as a whole: their halves, then `choose_pair`.
void choose_prologue(Inst& inst, const InstInfo& info, const char* mnemonic);

// For a VOPD instruction whose halves are chosen: sets `fn`; where the second half reads nothing that the first one writes,
// the first half's `dst` becomes the register itself (else it stays kPairRow).
void choose_pair(Inst& inst, Pair& pair);

}  // namespace rdna
