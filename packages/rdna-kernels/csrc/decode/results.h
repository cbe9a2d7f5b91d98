// Where a row's output goes, and how the results of the workgroups that share a sequence become one.
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

}  // namespace rdna
