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

  // Element j of lane (h, c): bias + the score of key 2j + h for row c of each row tile.
  RDNA_INLINE void multiply(const Query &query, Accumulator (&scores)[kRowTiles]) const {
    constexpr int ahead = kFragmentsAhead;
    Fragment keys[kKeyBlocks], queries[kKeyBlocks][kRowTiles];
#pragma unroll
    for (int block = 0; block < ahead; ++block) keys[block] = read(block);
    pin_order();
#pragma unroll
    for (int block = 0; block < kKeyBlocks; ++block) {
      if (block + ahead < kKeyBlocks) keys[block + ahead] = read(block + ahead);
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
        for (int i = 0; block == 0 && i < kQueriesAhead; ++i) queries[i][tile] = query(tile, i);
        constexpr int last = kKeyBlocks - 1 - kQueriesAhead;
        if (block <= last) queries[block + kQueriesAhead][tile] = query(tile, block + kQueriesAhead);
      }
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
        scores[tile] = Element::multiply_add(keys[block], queries[block][tile], scores[tile]);
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

  word4 rows_[kKeyLoads];
  Lds written_, read_;
};

}  // namespace rdna
