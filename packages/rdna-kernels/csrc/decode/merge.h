// Results of the waves of a workgroup, and of the workgroups of a split sequence, become one output.
#pragma once

#include "arch/gfx11/atomics.h"
#include "arch/gfx11/barrier.h"
#include "decode/values.h"

namespace rdna {

// Below any score: what stands for the reference of a wave or segment that has seen no key, whose sums are zeros.
constexpr float kNoReference = -1e35f;

// Eight dimensions of a row and the sum of weights that belongs to them, both for one reference.
struct Piece {
  float8 values = {};
  float sum = 0.0f;

  RDNA_INLINE void add(float8 more, float share, float factor) {
    values += more * factor;
    sum += share * factor;
  }
};

// The scale of the softmax as a sign, with which a larger reference stands for larger weights, and a size.
struct Scale {
  float sign, size;
  RDNA_INLINE explicit Scale(float scale_log2) : sign(scale_log2 < 0.0f ? -1.0f : 1.0f), size(scale_log2 * sign) {}
};

// Where a row's output goes, and where its partial results stand between workgroups.
class Results {
  static constexpr uint32_t kPieces = kHeadSize / 8;  // of a row
  static constexpr int kAtOnce = 4;                   // segments whose partial results are loaded together
  static constexpr int kTogether = kRows * kPieces > kThreads ? 2 : 1;  // and pieces of a thread

 public:
  RDNA_INLINE Results(const DecodeArguments &arguments, const Place &place) : arguments_(arguments), place_(place) {}

  // Where the output of eight dimensions of a row goes.
  struct Target {
    Row row;
    uint64_t at;
  };

  RDNA_INLINE Target target(int row, int dim) const {
    Target target = {find_row(arguments_, place_, row)};
    const uint32_t first_token = place_.sequence * arguments_.max_query_len;
    const uint32_t first_head = place_.kv_head * arguments_.gqa;
    target.at = address(arguments_.out) + dim * kElementBytes +
                row_offset(first_token + target.row.token, arguments_.out_stride_token, first_head + target.row.head,
                           arguments_.out_stride_head);
    return target;
  }

  RDNA_INLINE void put_output(const Target &target, int dim, Piece piece, float reference) const {
    if (place_.features & (kFeatureSinks | kFeatureLse)) finish_sum(target.row, dim, piece, reference);
    float8 v = piece.values * (piece.sum > 0.0f ? reciprocal(piece.sum) : 0.0f);
    word4 rounded = {Element::round(v[0], v[1]), Element::round(v[2], v[3]), Element::round(v[4], v[5]),
                     Element::round(v[6], v[7])};
    store(target.at, 0, rounded);
  }

  RDNA_INLINE void put_partial(int row, int dim, const Piece &piece, float reference) const {
    int segment = place_.segment;
    opaque_uniform(segment);  // what follows is made here, and only where it is needed
    uint64_t slot = first_slot(segment);
    uint64_t sums = address(arguments_.partial_acc) + slot * (kHeadSize * 4);
    uint32_t offset = (row * kHeadSize + dim) * 4;
    store(sums, offset, piece.values.lo);
    store(sums, offset + 16, piece.values.hi);
    if (dim == 0) {
      store(address(arguments_.partial_max) + slot * 4, row * 4, reference);
      store(address(arguments_.partial_sum) + slot * 4, row * 4, piece.sum);
    }
  }

  // The counter is far away when the first workgroup arrives there; so it is asked for long before.
  RDNA_INLINE void prepare_merge(uint32_t thread) const {
    int sequence = place_.sequence;
    opaque_uniform(sequence);  // no register is kept for what follows, and is made again for the merge
    if (thread == 0) ask_for_counter((Global<int>)(arguments_.counters + group(sequence)));
  }

  // The last workgroup to arrive merges what all have put; no one waits for it.
  RDNA_INLINE void merge_partials(int segments, Lds flag, uint32_t thread) const {
    opaque(thread);
    Global<int> counter = (Global<int>)(arguments_.counters + group(place_.sequence));
    release_to_device();
    barrier();
    if (thread == 0) lds_store(flag, count_arrival(counter));
    barrier();
    if (uniform(lds_load<int>(flag)) != segments - 1) return;
    acquire_from_device();
    if (thread == 0) reset_counter(counter);
    for (uint32_t index = thread; index < place_.rows * kPieces; index += kTogether * kThreads) {
      merge_pieces(segments, index);
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

  // Of several segments and pieces of a thread all loads go out together, for each round trip is a large part of a
  // short launch. What does not exist is past the end of a buffer: it is not asked for and counts nothing.
  RDNA_INLINE void merge_pieces(int segments, uint32_t index) const {
    const Scale scale(arguments_.scale_log2);
    Piece pieces[kTogether];
    float references[kTogether];
    Target targets[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) references[k] = kNoReference;
    for (int first = 0; first < segments; first += kAtOnce) {
      float references_of[kTogether][kAtOnce], sums[kTogether][kAtOnce];
      float8 values[kTogether][kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const uint64_t slot = first_slot(first + i);
        const uint32_t rows = first + i < segments ? place_.rows : 0;
        const Buffer all_references = buffer(address(arguments_.partial_max) + slot * 4, rows * 4);
        const Buffer all_sums = buffer(address(arguments_.partial_sum) + slot * 4, rows * 4);
        const Buffer all_values =
            buffer(address(arguments_.partial_acc) + slot * (kHeadSize * 4), rows * (kHeadSize * 4));
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const uint32_t row = (index + k * kThreads) / kPieces, offset = (index + k * kThreads) * 32;
          references_of[k][i] = load<float>(all_references, row * 4);
          sums[k][i] = load<float>(all_sums, row * 4);
          values[k][i] = joined(load<float4>(all_values, offset), load<float4>(all_values, offset, 16));
        }
      }
      pin_order();
      if (first + kAtOnce >= segments) {
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          targets[k] = target((index + k * kThreads) / kPieces, (index + k * kThreads) % kPieces * 8);
        }
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        float highest = references[k];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          references_of[k][i] = sums[k][i] > 0.0f ? references_of[k][i] * scale.sign : kNoReference;
          highest = maximum(highest, references_of[k][i]);
        }
        const Piece kept = pieces[k];
        pieces[k] = {};
        pieces[k].add(kept.values, kept.sum, exp2((references[k] - highest) * scale.size));
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          pieces[k].add(values[k][i], sums[k][i], exp2((references_of[k][i] - highest) * scale.size));
        }
        references[k] = highest;
      }
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint32_t at = index + k * kThreads;
      if (k == 0 || at < place_.rows * kPieces) {
        put_output(targets[k], at % kPieces * 8, pieces[k], references[k] * scale.sign);
      }
    }
  }

  // Of (sequence, kv head, row group).
  RDNA_INLINE uint32_t group(uint32_t sequence) const {
    return (sequence * arguments_.num_kv_heads + place_.kv_head) * arguments_.row_groups + place_.row_group;
  }

  // Row groups have slots for as many rows as the largest has, none for padding rows. The host sees to it that all
  // slots are fewer than 2^31. A plan's are numbered by its rows, in which a sequence's segments follow one another.
  RDNA_INLINE uint32_t first_slot(int segment) const {
    uint32_t slot = group(place_.sequence) * arguments_.max_segments + segment;
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
