#include "valu/matrix_memory.hpp"

namespace rdna {
namespace {

// Which columns repeat others; false: more than eight are different.
bool find_repeats(KnownColumns& known, const u32 (*b)[kLanes]) {
  u32 firsts[8], count = 0;  // columns that differ from all before
  alignas(64) u32 source[kHalf], spread[kHalf], gather[kHalf] = {};
  for (u32 column = 0; column < kHalf; ++column) {
    const auto equals = [&](u32 first) {
      if (b[0][first] != b[0][column]) return false;
      for (int r = 0; r < kDepth / 2; ++r)
        if (b[r][first] != b[r][column] || b[r][kHalf + first] != b[r][kHalf + column]) return false;
      return true;
    };
    u32 n = 0;
    while (n < count && !equals(firsts[n])) ++n;
    if (n == count) {
      if (count == 8) return false;
      firsts[count++] = column;
    }
    source[column] = firsts[n];
    spread[column] = n;
  }
  known.count = count <= 4 ? 4 : 8;
  const u32 step = known.count == 4 ? 2 : 1, upper = known.count == 4 ? 1 : 8;
  for (u32 n = 0; n < count; ++n) {
    gather[n * step] = firsts[n];
    gather[n * step + upper] = kHalf + firsts[n];
  }
  known.source = block<u32, kHalf>(source);
  known.gather = block<u32, kHalf>(gather);
  known.spread[0] = block<u32, kHalf>(spread) * step;
  known.spread[1] = known.spread[0] + (step - 1);
  return true;
}

}  // namespace

KnownColumns& MatrixMemory::place_of(u32 reg, const u32 (*b)[kLanes]) {
  std::unique_ptr<KnownColumns>& few = few_[reg];
  if (!few) few = std::make_unique<KnownColumns>();
  KnownColumns* known = few.get();
  if (!find_repeats(*few, b)) {
    known = by_register_[reg];
    if (!known || known->reg != reg || known->count < kHalf) known = &many_[next_++ % many_.size()];
  }
  known->reg = reg;
  by_register_[reg] = known;
  return *known;
}

MatrixMemory& add_matrix_memory(Wave& w) {
  w.group->state->matrices = std::make_shared<MatrixMemory>(*w.program);
  return *w.group->state->matrices;
}

}  // namespace rdna
