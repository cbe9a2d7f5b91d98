// Softcap and ALiBi: what becomes of scores before the softmax.
#pragma once

#include "arch/gfx11/fragment.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/lds.h"
#include "decode/softmax.h"
#include "decode/work.h"

namespace rdna {

// The ALiBi slope of each of the workgroup's rows, in the unit of scores before the scale, on its way to LDS.
class Slopes {
 public:
  RDNA_INLINE Slopes(const DecodeArguments &arguments, const Place &place, uint32_t thread) {
    if (place.features & kFeatureAlibi && thread < kRows) {
      int number = kRowTiles == 1 && place.rows <= 8 ? thread % 8 : thread;
      Row row = find_row(arguments, place, smaller(number, place.rows - 1));
      int kv_head = place.kv_head;
      opaque_uniform(kv_head);  // what follows is made here, and takes no register in the other instance of attend()
      uint32_t head = kv_head * arguments.gqa + row.head;
      slope_ = load<float>(address(arguments.alibi_slopes), head * sizeof(float));
      factor_ = arguments.slope_factor;
    }
  }

  RDNA_INLINE void store(Lds slopes, uint32_t thread) const {
    if (thread < kRows) lds_store(slopes + thread * 4, slope_ * factor_);
  }

 private:
  float slope_, factor_;
};

// cap * tanh(score / cap) of a score no larger than kSeries of the cap: a polynomial for (tanh(x) / x - 1) / x^2 whose
// largest error, of x, is 2^-24. Nothing is taken from 1 here, so that small scores keep their digits.
constexpr float kSeries = 0.35f;

RDNA_INLINE float capped_near(float score, float inverse) {
  float x = score * inverse, square = x * x;
  float more = multiply_add(multiply_add(square, -0.04915948f, 0.13300012f), square, -0.3333267f);
  return multiply_add(score, more * square, score);
}

// Of any score: beyond, by the exponential.
RDNA_INLINE float capped(float score, float cap, float inverse) {
  constexpr float kTwiceLog2E = 2.885390081777927f;
  float rest = exp2(-__builtin_fabsf(score * inverse * kTwiceLog2E));
  float far = __builtin_copysignf(multiply_add(-cap, rest, cap) * reciprocal(1.0f + rest), score);
  return __builtin_fabsf(score * inverse) < kSeries ? capped_near(score, inverse) : far;
}

// What a launch does to the scores of a tile, in the unit of Q K^T. Biases of hundreds, far from the row's token, would
// cost digits if they stood in the accumulators: there is only how much more later keys of the tile have, and the bias of
// its first key, the base of its scores, is added with the reference.
class ScoreChange {
 public:
  RDNA_INLINE ScoreChange(const DecodeArguments &arguments, int features, Lds slopes)
      : arguments_(arguments), features_(features), slopes_(slopes) {}

  // What the accumulators start from; a cap comes before all that is added.
  RDNA_INLINE Accumulator start(int row_tile, const RowState &row, int first_key) const {
    if ((features_ & (kFeatureSoftcap | kFeatureAlibi)) != kFeatureAlibi) return repeated(0.0f);
    const float step = slope(row_tile) * (1.0f / kHeadDimSplit), near = nearest(row, first_key);
    Accumulator scores;
#pragma unroll
    for (int j = 0; j < 8; ++j) scores[j] = (2.0f * j - near) * step;
    return scores;
  }

  // Element j of lane (h, c) is the score of key first_key + 2j + h. Afterwards it lacks the base.
  RDNA_INLINE void finish(Accumulator (&scores)[kRowTiles], const RowState (&rows)[kRowTiles], int first_key,
                          float (&bases)[kRowTiles]) const {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      opaque(scores[i]);  // here and below: so that paths share registers
      if (features_ & kFeatureSoftcap) put_cap(scores[i]);
      opaque(scores[i]);
      bases[i] = 0.0f;
      if (features_ & kFeatureAlibi) {
        const float step = slope(i);
        const float near = nearest(rows[i], first_key);
        bases[i] = step * (distance(rows[i], first_key) + near);
        if (features_ & kFeatureSoftcap) {
#pragma unroll
          for (int j = 0; j < 8; ++j) scores[i][j] = multiply_add(2.0f * j - near, step, scores[i][j]);
        }
      }
      opaque(scores[i]);
    }
  }

  // Scores, with the base, less the row's reference.
  RDNA_INLINE void add_base(Accumulator &scores, float base, const RowState &row) const {
    scores -= row.reference() - base;
  }

 private:
  RDNA_INLINE void put_cap(Accumulator &scores) const {
    const float cap = arguments_.softcap, inverse = arguments_.softcap_inverse;
    float top = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) top = maximum(top, __builtin_fabsf(scores[j]));
    if (any(!(top * inverse < kSeries))) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float score = scores[j];
        opaque(score);  // one at a time and apart from the other path: together they would take registers
        scores[j] = capped(score, cap, inverse);
        pin_order();
      }
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j) scores[j] = capped_near(scores[j], inverse);
    }
  }

  RDNA_INLINE float slope(int row_tile) const {
    uint32_t place_in_wave = lane();
    opaque(place_in_wave);  // what follows is made here: no register is kept for it
    return lds_load<float>(slopes_ + (row_tile * 16 + place_in_wave % 16) * 4);
  }

  // From the tile's first key to the one that is nearest to the row's token.
  RDNA_INLINE float nearest(const RowState &row, int first_key) const {
    int position = row.position;
    opaque(position);
    return (float)smaller(larger(position - first_key, 0), kTileKeys - 1);
  }

  // From the row's token to key first_key + h; exact wherever it is no more than 2^24.
  RDNA_INLINE float distance(const RowState &row, int first_key) const {
    uint32_t place_in_wave = lane();
    int position = row.position;
    opaque(place_in_wave);
    opaque(position);
    return (float)(first_key + (int)(place_in_wave / 16) - position);
  }

  const DecodeArguments &arguments_;
  int features_;
  Lds slopes_;
};

}  // namespace rdna
