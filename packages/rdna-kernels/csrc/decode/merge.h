// The results of a workgroup's waves meet in LDS and become one.
#pragma once

#include "arch/gfx11/barrier.h"
#include "decode/results.h"
#include "decode/values.h"

namespace rdna {

// In LDS a row of the merge holds kSums of each wave's sums as the accumulators have them: dimensions in order, or
// 8 / kPasses of each block, whose dimensions are those that one lane loaded of V each.
template <class Merge>
RDNA_INLINE void put_accumulators(const Accumulator (&sums)[kDimBlocks], int pass, Lds row, uint32_t half) {
  constexpr int blocks = kDimBlocks / Merge::kPasses, elements = 8 / Merge::kPasses;
  if constexpr (kDimsInOrder) {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
      const Accumulator &values = sums[pass * blocks + block];
      lds_store(row + (block * 16 + half * 8) * 4, values.lo);
      lds_store(row + (block * 16 + half * 8) * 4 + 16, values.hi);
    }
  } else {
#pragma unroll
    for (int block = 0; block < kDimBlocks; ++block) {
#pragma unroll
      for (int part = 0; part < elements / 4; ++part) {
        float4 values = pass + part ? sums[block].hi : sums[block].lo;
        lds_store(row + ((block * 2 + half) * elements + part * 4) * 4, values);
      }
    }
  }
}

// Where a row has the sums of the wave that has a dimension, or the dimension itself if they are in order. `dim` counts
// the dimensions that a row has there.
template <class Merge>
RDNA_INLINE Lds part_of_row(Lds row, uint32_t dim) {
  row += dim / Merge::kWaveDims * Merge::kSums * 4;
  return kDimsInOrder ? row + dim % Merge::kWaveDims * 4 : row;
}

// Eight dimensions from there.
template <class Merge>
RDNA_INLINE float8 get_dims(Lds row, uint32_t dim) {
  uint32_t dims = kWaveDims;
  if constexpr (8 % kLaneDims != 0) dims = dims_from(dim / kWaveDims * kWaveDims);
  if constexpr (kDimsInOrder) return joined(lds_load<float4>(row), lds_load<float4>(row + 16));
  dim %= Merge::kWaveDims;
  constexpr int elements = 8 / Merge::kPasses;
  float8 values;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    uint32_t column = dim / kLaneDims + i / kLaneDims, block = i % kLaneDims;
    if constexpr (8 % kLaneDims != 0) {
      column = (dim + i) / kLaneDims;
      block = dim + i - lane_dim(column, dims);
    }
    values[i] = lds_load<float>(row + ((block * 2 + column % 2) * elements + column / 2) * 4);
  }
  return values;
}

// What all waves have of eight dimensions of a row; all is asked for before any of it is waited for.
template <bool kFolded>
class WavePieces {
  using Merge = rdna::Merge<kFolded>;
  static constexpr bool kAddsResiduals = kFolded && !Merge::kFoldsFirst;

 public:
  RDNA_INLINE WavePieces(Lds lds, int tile, uint32_t row, uint32_t dim) : dim_(dim) {
    shares_at_ = lds + kSharesAt + (tile * 16 + row) * 8;
    values_at_ = part_of_row<Merge>(lds + row * Merge::kPitch, dim);
    opaque(shares_at_);
    opaque(values_at_);
  }

  RDNA_INLINE void load() {
#pragma unroll
    for (int i = 0; i < kTileWaves; ++i) shares_[i] = lds_load<float2>(shares_at_ + i * kRows * 8);
#pragma unroll
    for (int i = 0; i < kTileWaves; ++i) {
      Lds from = values_at_ + i * Merge::kRows * Merge::kPitch;
      values_[i] = get_dims<Merge>(from, dim_);
      if constexpr (kAddsResiduals) residuals_[i] = get_dims<Merge>(from + 8 * Merge::kPitch, dim_);
    }
    pin_order();
  }

  // References, here and in LDS, have the scale's sign.
  RDNA_INLINE Piece sum(const Scale &scale, float &reference) const {
    float factors[kTileWaves] = {1.0f};
    reference = shares_[0].x;
    if constexpr (kTileWaves > 1) {
      constexpr int middle = kTileWaves / 2;
      float other = shares_[middle].x;
#pragma unroll
      for (int i = 1; i < middle; i += 2) {
        reference = maximum(reference, shares_[i].x, shares_[smaller(i + 1, middle - 1)].x);
        other = maximum(other, shares_[middle + i].x, shares_[middle + smaller(i + 1, middle - 1)].x);
      }
      reference = maximum(reference, other);
#pragma unroll
      for (int i = 0; i < kTileWaves; ++i) factors[i] = exp2((shares_[i].x - reference) * scale.size);
#pragma unroll
      for (int i = 0; i < kTileWaves; ++i) opaque(factors[i]);
      pin_order();
    }
    Piece piece;
#pragma unroll
    for (int i = 0; i < kTileWaves; ++i) {
      float8 values = values_[i];
      if constexpr (kAddsResiduals) values += residuals_[i];
      piece.add(values, shares_[i].y, factors[i]);
    }
    return piece;
  }

 private:
  Lds shares_at_, values_at_;
  uint32_t dim_;
  float2 shares_[kTileWaves];
  float8 values_[kTileWaves], residuals_[kTileWaves];
};

// Of the head, by what a pass of the merge counts.
template <class Merge>
RDNA_INLINE uint32_t head_dim(int pass, uint32_t dim) {
  if (Merge::kPasses == 1) return dim;
  return dim / Merge::kWaveDims * kWaveDims + pass * Merge::kWaveDims + dim % Merge::kWaveDims;
}

// The waves' accumulators go to LDS, 16 rows at a time; then each thread adds the waves' shares of 8 dimensions of one
// row. Padding rows are not read. kFolded: columns 8-15 hold what the residuals gave to the rows of columns 0-7.
template <bool kFolded>
RDNA_INLINE void merge_waves(Accumulator (&sums)[kRowTiles][kDimBlocks], const RowState (&states)[kRowTiles],
                             Lds lds, const Place &place, const Results &results, float scale_log2, bool split,
                             uint32_t thread, int wave) {
  using Merge = rdna::Merge<kFolded>;
  constexpr uint32_t pieces = Merge::kDims / 8;
  uint32_t place_in_wave = lane();
  opaque(place_in_wave);  // what follows from it is made here, not before the loop: no register is kept for it
  const uint32_t half = place_in_wave / 16, column = place_in_wave % 16;
  const int tile_wave = wave / kHeadDimSplit, dim_wave = wave % kHeadDimSplit;
  const Scale scale(scale_log2);
  Lds my_shares = lds + kSharesAt + (tile_wave * kRows + column) * 8;
  Lds mine = lds + (tile_wave * Merge::kRows + column) * Merge::kPitch + dim_wave * Merge::kSums * 4;
  opaque(my_shares);
  opaque(mine);
  float sum_of_row[kRowTiles];
#pragma unroll
  for (int tile = 0; tile < kRowTiles; ++tile) {
    sum_of_row[tile] = states[tile].sum + other_half(states[tile].sum);
    opaque(sum_of_row[tile]);
  }
  // Where a thread's output goes, if it has one, is worked out while something else is waited for.
  constexpr bool kOnce = (kFolded ? 8 : 16) * pieces <= kThreads;
  Results::Target target;
  if constexpr (Merge::kFoldsFirst) {
    if constexpr (kOnce) {
      opaque(thread);
      target = results.target(thread / pieces, thread % pieces * 8);
      opaque(target.at);
    }
#pragma unroll
    for (int i = 0; i < kDimBlocks * 8; ++i) sums[0][i / 8][i % 8] = plus_eight_lanes_on(sums[0][i / 8][i % 8]);
  }
  lds_barrier();
  if (half == 0 && dim_wave == 0) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      // A reference by which a larger one stands for larger weights; of a wave that has seen no key, less than any.
      float reference = sum_of_row[tile] > 0.0f ? states[tile].reference() * scale.sign : kNoReference;
      lds_store(my_shares + tile * 16 * 8, float2{reference, sum_of_row[tile]});
    }
  }
#pragma unroll
  for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
    for (int pass = 0; pass < Merge::kPasses; ++pass) {
      if (tile + pass > 0) lds_barrier();
      if (!Merge::kFoldsFirst || column < 8) put_accumulators<Merge>(sums[tile], pass, mine, half);
      pin_order();
      const uint32_t count = smaller(larger(place.rows - tile * 16, 0), 16) * pieces;
      uint32_t index = thread;
      opaque(index);
      if (kOnce && !Merge::kFoldsFirst) {
        target = results.target(tile * 16 + index / pieces, head_dim<Merge>(pass, index % pieces * 8));
        opaque(target.at);
      }
      WavePieces<kFolded> waves(lds, tile, index / pieces, index % pieces * 8);
      lds_barrier();
      while (index < count) {
        const uint32_t row = index / pieces, dim = head_dim<Merge>(pass, index % pieces * 8);
        if (Merge::kPasses * Merge::kDims <= kHeadSize || dim < kHeadSize) {
          if (!kOnce) waves = WavePieces<kFolded>(lds, tile, row, index % pieces * 8);
          waves.load();
          if (!kOnce && !split) {
            target = results.target(tile * 16 + row, dim);
            opaque(target.at);
          }
          float reference;
          const Piece piece = waves.sum(scale, reference);
          if (split) {
            results.put_partial(tile * 16 + row, dim, piece, reference * scale.sign);
          } else {
            results.put_output(target, dim, piece, reference * scale.sign);
          }
        }
        if (kOnce) break;
        index += kThreads;
      }
    }
  }
}

}  // namespace rdna
