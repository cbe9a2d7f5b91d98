// K and the scores: a tile comes row by row from memory, turns in LDS into A fragments, and meets Q in S^T = K Q^T.
#pragma once

#include "arch/gfx11/buffer.h"
#include "arch/gfx11/lanes.h"
#include "decode/element.h"
#include "decode/offsets.h"
#include "decode/query.h"

namespace rdna {

class Keys {
 public:
  RDNA_INLINE explicit Keys(Lds tile) {
    written_ = tile + lane() / kKeyLanes * kKeyPitch + lane() % kKeyLanes * 16;
    // Lanes whose row the matrix instruction does not read repeat their neighbour's, which costs no LDS cycle.
    read_ = tile + ((lane() & 14) + lane() / 16) * kKeyPitch;
    opaque(written_);
    opaque(read_);
  }

  RDNA_INLINE void load(Buffer tile, const Offsets &offsets) {
#pragma unroll
    for (int i = 0; i < kKeyLoads; ++i) rows_[i] = rdna::load<word4>(tile, offsets.key(i));
  }

  RDNA_INLINE void stage() {
#pragma unroll
    for (int i = 0; i < kKeyLoads; ++i) lds_store(written_ + i * kKeyLoadRows * kKeyPitch, rows_[i]);
  }

  // What comes from LDS for the scores of a tile, in turn, as far as it has been asked for.
  struct Fragments {
    Fragment keys[kKeyBlocks], queries[kKeyBlocks][kRowTiles];
  };

  RDNA_INLINE void read_first(const Query &query, Fragments &fragments) const {
#pragma unroll
    for (int block = 0; block < kFragmentsAhead; ++block) fragments.keys[block] = read(block);
#pragma unroll
    for (int block = 0; block < kQueriesAhead; ++block) read_queries(query, block, fragments);
  }

  // Element j of lane (h, c): bias + the score of key 2j + h for row c of each row tile.
  RDNA_INLINE void multiply(const Query &query, Fragments &fragments, Accumulator (&scores)[kRowTiles]) const {
#pragma unroll
    for (int block = 0; block < kKeyBlocks; ++block) {
      constexpr int ahead = kFragmentsAhead, queries_ahead = kQueriesAhead;
      if (block + ahead < kKeyBlocks) fragments.keys[block + ahead] = read(block + ahead);
      if (block + queries_ahead < kKeyBlocks) read_queries(query, block + queries_ahead, fragments);
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
        scores[tile] = Element::multiply_add(fragments.keys[block], fragments.queries[block][tile], scores[tile]);
      }
      pin_order();
    }
    // Else the matrix instructions sink below the mask's branch while what they read stays above, and registers spill.
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) opaque(scores[tile]);
  }

 private:
  RDNA_INLINE Fragment read(int block) const {
    return fragment(lds_load<word4>(read_ + block * 32), lds_load<word4>(read_ + block * 32 + 16));
  }

  RDNA_INLINE static void read_queries(const Query &query, int block, Fragments &fragments) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) fragments.queries[block][tile] = query(tile, block);
  }

  word4 rows_[kKeyLoads];
  Lds written_, read_;
};

}  // namespace rdna
