// Q: each row is loaded once by the workgroup and shared through LDS. Rows past the last one repeat it; dimensions past
// the last one are zeros.
#pragma once

#include "arch/gfx11/fragment.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/lds.h"
#include "arch/gfx11/memory.h"
#include "decode/work.h"

namespace rdna {

// The workgroup's query rows on their way to LDS, 16 bytes a thread and step.
class QueryLoads {
  static constexpr uint32_t kOfHead = kKeyBytes / 16, kPieces = kHeadDimSplit * kWaveDims / 8;  // of a row
  static constexpr int kSteps = (kRows * kPieces + kThreads - 1) / kThreads;

 public:
  RDNA_INLINE QueryLoads(const DecodeArguments &arguments, const Place &place, uint32_t thread) {
    const uint32_t first_token = place.sequence * arguments.max_query_len;
    const uint32_t first_head = place.kv_head * arguments.gqa;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t piece = thread + step * kThreads;
      if constexpr (kPieces != kOfHead) pieces_[step] = {};
      if (piece < place.rows * kPieces && piece % kPieces < kOfHead) {
        Row row = find_row(arguments, place, piece / kPieces);
        uint64_t at = row_offset(first_token + row.token, arguments.q_stride_token, first_head + row.head,
                                 arguments.q_stride_head);
        pieces_[step] = load<word4>(address(arguments.q) + at, piece % kPieces * 16);
      }
    }
  }

  RDNA_INLINE void store(const Place &place, Lds query, uint32_t thread) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t piece = thread + step * kThreads;
      if (piece < place.rows * kPieces) {
        lds_store(query + piece / kPieces * kQueryPitch + piece % kPieces * 16, pieces_[step]);
      }
    }
  }

 private:
  word4 pieces_[kSteps];
};

// Fragments of Q^T: lane (h, c) holds 16 dimensions of row c.
class Query {
 public:
  RDNA_INLINE void load(const Place &place, Lds query, int column, int first_dim) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      int row = smaller(tile * 16 + column, place.rows - 1);
      rows_[tile] = query + row * kQueryPitch + first_dim * kElementBytes;
#pragma unroll
      for (int block = 0; block < kQueryBlocks; ++block) fragments_[tile][block] = read(tile, block);
    }
    // Else the compiler puts the halves of each together anew for each tile.
#pragma unroll
    for (int i = 0; i < kRowTiles * kQueryBlocks; ++i) opaque(fragments_[i % kRowTiles][i / kRowTiles]);
  }

  RDNA_INLINE Fragment operator()(int tile, int block) const {
    return block < kQueryBlocks ? fragments_[tile][block] : read(tile, block);
  }

 private:
  RDNA_INLINE Fragment read(int tile, int block) const {
    return fragment(lds_load<word4>(rows_[tile] + block * 32), lds_load<word4>(rows_[tile] + block * 32 + 16));
  }

  Lds rows_[kRowTiles];
  Fragment fragments_[kRowTiles][larger(kQueryBlocks, 1)];
};

}  // namespace rdna
