// The online softmax of one query row a lane. Weights are exp2((score - reference) * scale_log2). The reference starts
// 2^7 below the first tile's maximum, so that the residuals of small weights are no fp16 denormals, and moves only when a
// weight passes 2^15, which fp32 sums and 16-bit weights bear well: so the accumulators are rescaled once or twice in a
// wave's life, and most tiles need no maximum across lanes.
#pragma once

#include "decode/element.h"
#include "decode/work.h"

namespace rdna {

constexpr float kStart = 7.0f;      // log2 of the largest weight where the reference stands
constexpr float kHeadroom = 15.0f;  // log2

// The row that a lane (and its twin in the other half) stands for.
struct RowState {
  int position;                // of its token; below 0: it sees nothing
  float ceiling = -kInfinity;  // of weights (log2) that leave the reference; -infinity before the first key
  float sum = 0.0f;            // of this lane's weights
  float bias = 0.0f;           // -reference, a score, shared by the waves of a tile: the matrix instructions add to it

  RDNA_INLINE float reference() const { return bias * -kHeadDimSplit; }
};

// Weights (log2) of keys that the row does not see become -infinity, whatever they were.
RDNA_INLINE void mask(Accumulator &weights, const RowState &row, int first_key, int window) {
  int position = row.position;
  opaque(position);  // what follows is rare: no register is kept for it
  int start = window ? larger(position - window + 1, 0) : 0;
  uint32_t seen = position < 0 ? 0 : position - start + 1;
  uint32_t key = first_key + lane() / 16 - start;
#pragma unroll
  for (int j = 0; j < 8; ++j) weights[j] = key + 2 * j < seen ? weights[j] : -kInfinity;
}

// Moves the reference to 2^kStart below the largest weight where one has passed the ceiling; what was made before
// follows, unless this is the first tile. `base`: what scores lack, by default the reference before.
template <bool kTwoLoops>
RDNA_INLINE void keep_below_ceiling(const Accumulator &scores, Accumulator &weights, RowState &row, float scale_log2,
                                    bool first, Accumulator (&sums)[kDimBlocks], const float *base = nullptr) {
  float top = maximum(maximum(weights[0], weights[1], weights[2]), weights[3], weights[4]);
  top = maximum(top, maximum(weights[5], weights[6], weights[7]), weights[0]);
  if (!any(top > row.ceiling)) return;
  top = maximum(top, other_half(top));
  bool moves = top > row.ceiling;
  if constexpr (kTwoLoops) opaque_uniform(scale_log2);  // no register is kept for its reciprocal
  float before = row.reference();
  float reference = moves && scale_log2 != 0.0f ? before + (top - kStart) * reciprocal(scale_log2) : before;
  row.bias = reference * (-1.0f / kHeadDimSplit);
  float move = row.reference() - (base ? *base : before);
  row.ceiling = moves ? kHeadroom : row.ceiling;
#pragma unroll
  for (int j = 0; j < 8; ++j) weights[j] = weights[j] == -kInfinity ? -kInfinity : (scores[j] - move) * scale_log2;
  if (first) return;
  const float factor = exp2(-maximum(moves ? top - kStart : 0.0f, 0.0f));
  row.sum *= factor;
#pragma unroll
  for (int block = 0; block < kDimBlocks; ++block) sums[block] *= factor;
}

RDNA_INLINE void exponentiate(Accumulator &weights, RowState &row) {
#pragma unroll
  for (int j = 0; j < 8; ++j) weights[j] = exp2(weights[j]);
  row.sum += ((weights[0] + weights[1]) + (weights[2] + weights[3])) +
             ((weights[4] + weights[5]) + (weights[6] + weights[7]));
}

// The weights of one row tile as B fragments. In half 0 the keys are 0, 2, ... 14, 1, 3, ... 15, in half 1 the odd ones
// come first: each lane's own, then those of its twin. V's fragments have the same order.
struct Weights {
  Fragment high, low;
};

RDNA_INLINE Fragment with_other_half(word4 own) {
  return fragment(own, word4{other_half(own.x), other_half(own.y), other_half(own.z), other_half(own.w)});
}

// kFolded: no more than 8 rows. Columns 8-15 repeat them and carry the residuals, in the same matrix instruction.
template <bool kFolded>
RDNA_INLINE Weights split(const Accumulator &p, float residual_factor) {
  word4 high, low;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    low[i] = Element::residual(p[2 * i], p[2 * i + 1], residual_factor);
    if constexpr (!kFolded) high[i] = Element::high(p[2 * i], p[2 * i + 1]);
  }
  Weights weights;
  weights.low = with_other_half(low);
  if constexpr (!kFolded) weights.high = with_other_half(high);
  return weights;
}

}  // namespace rdna
