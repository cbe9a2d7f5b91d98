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
    // Without branches, so that the shares of several waves are read at once.
    bool higher = (sum == 0.0f) | ((other.sum > 0.0f) & ((other.reference - reference) * scale_log2 > 0.0f));
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
  static constexpr uint32_t kPieces = kHeadSize / 8;  // of a row
  static constexpr int kAtOnce = 4;                   // segments whose partial results are loaded together

 public:
  RDNA_INLINE Results(const DecodeArguments &arguments, const Place &place) : arguments_(arguments), place_(place) {}

  RDNA_INLINE void put_output(int row, int dim, Piece piece, float reference) const {
    Row at = find_row(arguments_, place_, row);
    if (place_.features & (kFeatureSinks | kFeatureLse)) finish_sum(at, dim, piece, reference);
    int64_t token = (int64_t)place_.sequence * arguments_.max_query_len + at.token;
    int64_t head = place_.kv_head * arguments_.gqa + at.head;
    int64_t offset = token * arguments_.out_stride_token + head * arguments_.out_stride_head + dim;
    float8 v = piece.values * (piece.sum > 0.0f ? reciprocal(piece.sum) : 0.0f);
    word4 rounded = {Element::round(v[0], v[1]), Element::round(v[2], v[3]), Element::round(v[4], v[5]),
                     Element::round(v[6], v[7])};
    store(address(arguments_.out) + offset * kElementBytes, 0, rounded);
  }

  RDNA_INLINE void put_partial(int row, int dim, const Piece &piece, float reference) const {
    uint64_t slot = first_slot(place_.segment);
    uint64_t sums = address(arguments_.partial_acc) + slot * (kHeadSize * 4);
    uint32_t offset = (row * kHeadSize + dim) * 4;
    store(sums, offset, piece.values.lo);
    store(sums, offset + 16, piece.values.hi);
    if (dim == 0) {
      store(address(arguments_.partial_max) + slot * 4, row * 4, reference);
      store(address(arguments_.partial_sum) + slot * 4, row * 4, piece.sum);
    }
  }

  // The last workgroup to arrive merges what all have put; no one waits for it.
  RDNA_INLINE void merge_partials(int segments, Lds flag, uint32_t thread) const {
    opaque(thread);
    Global<int> counter = (Global<int>)(arguments_.counters + group());
    release_to_device();
    barrier();
    if (thread == 0) lds_store(flag, count_arrival(counter));
    barrier();
    if (uniform(lds_load<int>(flag)) != segments - 1) return;
    acquire_from_device();
    if (thread == 0) reset_counter(counter);
    for (uint32_t index = thread; index < place_.rows * kPieces; index += kThreads) {
      merge_piece(segments, index / kPieces, index % kPieces * 8);
    }
  }

 private:
  // The sink joins the sum of a row that has keys. It may outweigh them by far: then all refers to it.
  RDNA_INLINE void finish_sum(Row at, int dim, Piece &piece, float reference) const {
    constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
    uint32_t head = (uint32_t)at.head + place_.kv_head * arguments_.gqa;
    float reference_log2 = reference * arguments_.scale_log2;
    if (place_.features & kFeatureSinks) {
      float sink = load<float>(address(arguments_.sinks), head * sizeof(float)) * kLog2E - reference_log2;
      float move = maximum(sink, 0.0f), factor = exp2(-move);
      piece.values *= factor;
      piece.sum = piece.sum > 0.0f ? multiply_add(piece.sum, factor, exp2(sink - move)) : 0.0f;
      reference_log2 += move;
    }
    if (place_.features & kFeatureLse && dim == 0) {
      int64_t token = (int64_t)place_.sequence * arguments_.max_query_len + at.token;
      int64_t offset = token * arguments_.lse_stride_token + head * arguments_.lse_stride_head;
      float lse = piece.sum > 0.0f ? (log2(piece.sum) + reference_log2) * kLn2 : -kInfinity;
      store(address(arguments_.lse) + offset * sizeof(float), 0, lse);
    }
  }

  // Loads of several segments go out together, for each round trip is a large part of a short launch.
  RDNA_INLINE void merge_piece(int segments, int row, int dim) const {
    const float scale = arguments_.scale_log2;
    Share highest = {0.0f, 0.0f};
    Piece piece;
    for (int first = 0; first < segments; first += kAtOnce) {
      Share shares[kAtOnce];
      float8 values[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        uint64_t slot = first_slot(smaller(first + i, segments - 1));
        uint64_t sums = address(arguments_.partial_acc) + slot * (kHeadSize * 4);
        uint32_t offset = (row * kHeadSize + dim) * 4;
        shares[i].reference = load<float>(address(arguments_.partial_max) + slot * 4, row * 4);
        shares[i].sum = load<float>(address(arguments_.partial_sum) + slot * 4, row * 4);
        values[i] = joined(load<float4>(sums, offset), load<float4>(sums, offset + 16));
      }
      Share before = highest;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i >= segments) shares[i].sum = 0.0f;
        highest = highest.or_higher(shares[i], scale);
      }
      float8 kept = piece.values;
      Share kept_share = {before.reference, piece.sum};
      piece = {};
      piece.add(kept, kept_share, highest.reference, scale);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) piece.add(values[i], shares[i], highest.reference, scale);
    }
    put_output(row, dim, piece, highest.reference);
  }

  // Of (sequence, kv head, row group).
  RDNA_INLINE uint32_t group() const {
    return (place_.sequence * arguments_.num_kv_heads + place_.kv_head) * arguments_.row_groups + place_.row_group;
  }

  // Row groups have slots for as many rows as the largest has, none for padding rows. The host sees to it that all
  // slots are fewer than 2^31. A plan's are numbered by its rows, in which a sequence's segments follow one another.
  RDNA_INLINE uint32_t first_slot(int segment) const {
    uint32_t slot = group() * arguments_.max_segments + segment;
    if (place_.features & kFeaturePlan) {
      uint32_t row = __builtin_amdgcn_workgroup_id_x() - place_.segment + segment;
      uint32_t groups = arguments_.num_kv_heads * arguments_.row_groups;
      slot = row * groups + place_.kv_head * arguments_.row_groups + place_.row_group;
    }
    return slot * place_.most_rows;
  }

  const DecodeArguments &arguments_;
  const Place &place_;
};

// In LDS a row of the merge holds kMergeSums of each wave's sums as the accumulators have them: dimensions in order, or
// 8 / kMergePasses of each block, whose dimensions are those that one lane loaded of V each.
RDNA_INLINE void put_accumulators(const Accumulator (&sums)[kDimBlocks], int pass, Lds row, uint32_t half) {
  constexpr int blocks = kDimBlocks / kMergePasses, elements = 8 / kMergePasses;
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

RDNA_INLINE float8 get_dims(Lds row, uint32_t dim) {
  uint32_t dims = kWaveDims;
  if constexpr (8 % kLaneDims != 0) dims = dims_from(dim / kWaveDims * kWaveDims);
  row += dim / kWaveDims * kMergeSums * 4;
  dim %= kWaveDims;
  if constexpr (kDimsInOrder) return joined(lds_load<float4>(row + dim * 4), lds_load<float4>(row + dim * 4 + 16));
  constexpr int elements = 8 / kMergePasses;
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

// The waves' accumulators go to LDS, 16 rows at a time; then each thread adds the waves' shares of 8 dimensions of one
// row. Padding rows are not read. kFolded: columns 8-15 hold what the residuals gave to the rows of columns 0-7.
template <bool kFolded>
RDNA_INLINE void merge_waves(const Accumulator (&sums)[kRowTiles][kDimBlocks], const RowState (&states)[kRowTiles],
                             Lds lds, const Place &place, const Results &results, float scale_log2, bool split,
                             uint32_t thread, int wave) {
  uint32_t place_in_wave = lane();
  opaque(thread);  // what follows from these two is made here, not before the loop: no register is kept for it
  opaque(place_in_wave);
  const uint32_t half = place_in_wave / 16, column = place_in_wave % 16;
  const int tile_wave = wave / kHeadDimSplit, dim_wave = wave % kHeadDimSplit;
  const Lds shares = lds + kSharesAt;
#pragma unroll
  for (int tile = 0; tile < kRowTiles; ++tile) {
    float sum = states[tile].sum + other_half(states[tile].sum);
    if (half == 0 && dim_wave == 0) {
      lds_store(shares + (tile_wave * kRows + tile * 16 + column) * 8, float2{states[tile].reference(), sum});
    }
#pragma unroll
    for (int pass = 0; pass < kMergePasses; ++pass) {
      lds_barrier();
      Lds mine = lds + (tile_wave * 16 + column) * kMergePitch + dim_wave * kMergeSums * 4;
      put_accumulators(sums[tile], pass, mine, half);
      lds_barrier();
      constexpr uint32_t pieces = kMergeDims / 8;
      const uint32_t count = smaller(larger(place.rows - tile * 16, 0), 16) * pieces;
      for (uint32_t index = thread; index < count; index += kThreads) {
        uint32_t row = index / pieces, dim = index % pieces * 8;
        if (kMergePasses * kMergeDims > kHeadSize && pass * kMergeDims + dim >= kHeadSize) continue;
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
          results.put_output(tile * 16 + row, pass * kMergeDims + dim, piece, highest.reference);
        }
      }
    }
  }
}

}  // namespace rdna
