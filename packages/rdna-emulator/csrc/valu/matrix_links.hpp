// What the code says of a matrix instruction's factors: when they are still in the registers as they were before.
#pragma once
#include <vector>

#include "core/machine.hpp"

namespace rdna {

// Of one instruction. The one before is the matrix instruction from which, with no branch in between, this one is reached.
struct MatrixLink {
  u8 back = 0;          // how many instructions the one before stands back; 0: there is none
  bool same_a = false;  // A is as the one before has read it
  u8 same_b = 0;        // B is as the n-th before has read it; 0: not known
  // Instructions by which a wave comes into a loop around this one that does not change B, or one of them twice: while
  // none of them is executed, B is as this instruction has read it the last time. -1: there is no such loop.
  i32 entries[2] = {-1, -1};
};

// Only v_wmma_f32_*, which remember their factors, count. By instruction.
std::vector<MatrixLink> link_matrices(const Program&);

}  // namespace rdna
