// Results of the waves of a workgroup, and of the workgroups of a split sequence, become one output.
#pragma once

#include "arch/gfx11/atomics.h"
#include "arch/gfx11/barrier.h"
#include "decode/values.h"

namespace rdna {

// What a wave, or a workgroup, knows of a row beside its accumulators. A sum of 0: it has seen no key.
struct Share {
  float reference, sum;

  RDNA_INLINE Share or_higher(Share other, float scale_log2) const {
    bool higher = sum == 0.0f || (other.sum > 0.0f && (other.reference - reference) * scale_log2 > 0.0f);
    return {higher ? other.reference : reference, higher ? other.sum : sum};
  }
};

// Eight dimensions of a row and the sum of weights that belongs to them, both for one reference.
struct Piece {
  float8 values = {};
  float sum = 0.0f;

  RDNA_INLINE void add(float8 more, Share share, float reference, float scale_log2) {
    float factor = share.sum > 0.0f ? exp2((share.reference - reference) * scale_log2) : 0.0f;
    values += more * factor;
    sum += share.sum * factor;
  }
};

// Where a row's output goes, and where its partial results stand between workgroups.
class Results {
  static constexpr int kPieces = kHeadSize / 8;  // of a row

 public:
  RDNA_INLINE Results(const DecodeArguments &arguments, const Place &place) : arguments_(arguments), place_(place) {
    group_ = (int64_t)place.sequence * arguments.num_kv_heads + place.kv_head;
    group_ = group_ * arguments.row_groups + place.row_group;
  }

  RDNA_INLINE void put_output(int row, int dim, const Piece &piece) const {
    Row at = find_row(arguments_, place_, row);
    int64_t token = (int64_t)place_.sequence * arguments_.max_query_len + at.token;
    int64_t head = place_.kv_head * arguments_.gqa + at.head;
    int64_t offset = token * arguments_.out_stride_token + head * arguments_.out_stride_head + dim;
    float inverse = piece.sum > 0.0f ? reciprocal(piece.sum) : 0.0f;
    float8 v = piece.values * inverse;
    word4 rounded = {Element::round(v[0], v[1]), Element::round(v[2], v[3]), Element::round(v[4], v[5]),
                     Element::round(v[6], v[7])};
    store(address(arguments_.out) + offset * kElementBytes, 0, rounded);
  }

  RDNA_INLINE void put_partial(int row, int dim, const Piece &piece, float reference) const {
    int64_t slot = this->slot(place_.segment, row);
    uint64_t at = address(arguments_.partial_acc) + (slot * kHeadSize + dim) * sizeof(float);
    store(at, 0, piece.values.lo);
    store(at, 16, piece.values.hi);
    if (dim == 0) {
      store(address(arguments_.partial_max) + slot * sizeof(float), 0, reference);
      store(address(arguments_.partial_sum) + slot * sizeof(float), 0, piece.sum);
    }
  }

  // The last workgroup to arrive merges what all have put; no one waits for it.
  RDNA_INLINE void merge_partials(int segments, Lds flag, int thread) const {
    opaque(thread);
    Global<int> counter = (Global<int>)(arguments_.counters + group_ * 4);
    release_to_device();
    barrier();
    if (thread == 0) lds_store(flag, count_arrival(counter));
    barrier();
    if (uniform(lds_load<int>(flag)) != segments - 1) return;
    acquire_from_device();
    if (thread == 0) reset_counter(counter);
    for (int index = thread; index < place_.rows * kPieces; index += kThreads) {
      int row = index / kPieces, dim = index % kPieces * 8;
      Share highest = get_share(0, row);
      for (int segment = 1; segment < segments; ++segment) {
        highest = highest.or_higher(get_share(segment, row), arguments_.scale_log2);
      }
      Piece piece;
      for (int segment = 0; segment < segments; ++segment) {
        uint64_t at = address(arguments_.partial_acc) + (slot(segment, row) * kHeadSize + dim) * sizeof(float);
        float8 values = joined(load<float4>(at, 0), load<float4>(at, 16));
        piece.add(values, get_share(segment, row), highest.reference, arguments_.scale_log2);
      }
      put_output(row, dim, piece);
    }
  }

 private:
  RDNA_INLINE int64_t slot(int segment, int row) const {
    return (group_ * arguments_.max_segments + segment) * kRows + row;
  }

  RDNA_INLINE Share get_share(int segment, int row) const {
    uint64_t at = slot(segment, row) * sizeof(float);
    return {load<float>(address(arguments_.partial_max) + at, 0), load<float>(address(arguments_.partial_sum) + at, 0)};
  }

  const DecodeArguments &arguments_;
  const Place &place_;
  int64_t group_;
};

// In LDS a row of the merge holds kMergeDims dimensions as the accumulators have them: contiguous where V went through
// LDS, else (V's lanes keep the dimensions that they loaded) 8 / kMergePasses of them kDimBlocks apart.
RDNA_INLINE void put_accumulators(const Accumulator (&sums)[kDimBlocks], int pass, Lds row, int half) {
  constexpr int blocks = kDimBlocks / kMergePasses, elements = 8 / kMergePasses;
  if constexpr (kValuesInLds) {
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

RDNA_INLINE float8 get_dims(Lds row, int dim) {
  if constexpr (kValuesInLds) return joined(lds_load<float4>(row + dim * 4), lds_load<float4>(row + dim * 4 + 16));
  constexpr int elements = 8 / kMergePasses;
  row += dim / kWaveDims * kWaveDims * 4;
  float8 values;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    int lane_row = dim % kWaveDims / kDimBlocks + i / kDimBlocks;
    values[i] = lds_load<float>(row + ((i % kDimBlocks * 2 + lane_row % 2) * elements + lane_row / 2) * 4);
  }
  return values;
}

// The waves' accumulators go to LDS, 16 rows at a time; then each thread adds the waves' shares of 8 dimensions of one
// row. Padding rows are not read. kFolded: columns 8-15 hold what the residuals gave to the rows of columns 0-7.
template <bool kFolded>
RDNA_INLINE void merge_waves(const Accumulator (&sums)[kRowTiles][kDimBlocks], const RowState (&states)[kRowTiles],
                             Lds lds, const Place &place, const Results &results, float scale_log2, bool split, int thread, int wave) {
  int place_in_wave = lane();
  opaque(thread);  // what follows from these two is made here, not before the loop: no register is kept for it
  opaque(place_in_wave);
  const int half = place_in_wave / 16, column = place_in_wave % 16;
  const int tile_wave = wave / kHeadDimSplit, dim_wave = wave % kHeadDimSplit;
  const Lds shares = lds + kSharesAt;
#pragma unroll
  for (int tile = 0; tile < kRowTiles; ++tile) {
    float sum = states[tile].sum + other_half(states[tile].sum);
    if (half == 0 && dim_wave == 0) lds_store(shares + (tile_wave * kRows + tile * 16 + column) * 8, float2{states[tile].reference(), sum});
#pragma unroll
    for (int pass = 0; pass < kMergePasses; ++pass) {
      lds_barrier();
      put_accumulators(sums[tile], pass, lds + (tile_wave * 16 + column) * kMergePitch + dim_wave * kWaveDims * 4, half);
      lds_barrier();
      constexpr int pieces = kMergeDims / 8;
      const int count = smaller(place.rows - tile * 16, 16) * pieces;
      for (int index = thread; index < count; index += kThreads) {
        int row = index / pieces, dim = index % pieces * 8;
        Share of[kTileWaves], highest = {0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < kTileWaves; ++i) {
          float2 share = lds_load<float2>(shares + (i * kRows + tile * 16 + row) * 8);
          of[i] = {share.x, share.y};
          highest = highest.or_higher(of[i], scale_log2);
        }
        Piece piece;
#pragma unroll
        for (int i = 0; i < kTileWaves; ++i) {
          Lds from = lds + (i * 16 + row) * kMergePitch;
          float8 values = get_dims(from, dim);
          if constexpr (kFolded) values += get_dims(from + 8 * kMergePitch, dim);
          piece.add(values, of[i], highest.reference, scale_log2);
        }
        if (split) {
          results.put_partial(tile * 16 + row, pass * kMergeDims + dim, piece, highest.reference);
        } else {
          results.put_output(tile * 16 + row, pass * kMergeDims + dim, piece);
        }
      }
    }
  }
}

}  // namespace rdna
