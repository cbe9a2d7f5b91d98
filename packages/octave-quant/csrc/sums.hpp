// Sums in the order that both paths share: four partial sums, sum j of the terms j, j + 4, ..., then (0 + 2) + (1 + 3).
#pragma once
#include "vectors.hpp"

namespace octave {

// The sum of n terms; term(i) gives those from i on, and n is a multiple of the lanes.
template <class Term>
OCTAVE_INLINE float sum(int n, Term term) {
  using Partial = float __attribute__((ext_vector_type(4)));
  Partial sums = 0;
  for (int i = 0; i < n; i += kLanes) {
    const Floats terms = term(i);
    sums += __builtin_shufflevector(terms, terms, 0, 1, 2, 3);
    sums += __builtin_shufflevector(terms, terms, 4, 5, 6, 7);
    sums += __builtin_shufflevector(terms, terms, 8, 9, 10, 11);
    sums += __builtin_shufflevector(terms, terms, 12, 13, 14, 15);
  }
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace octave
