// What the code says of matrix instructions that follow each other with no branch in between: which of their factors are
// still in the registers as an earlier one has read them.
#pragma once
#include <vector>

#include "core/machine.hpp"

namespace rdna {

// Of one instruction; the one before is the matrix instruction from which this one is always reached.
struct MatrixLink {
  u8 back = 0;       // how many instructions the one before stands back; 0: there is none
  bool same_a = false;  // A is as the one before has read it
  u8 same_b = 0;     // B is as the n-th before has read it; 0: not known
};

// Only v_wmma_f32_*, which remember their factors, count. By instruction.
std::vector<MatrixLink> link_matrices(const Program&);

}  // namespace rdna
