// V: rows come from memory as dimensions of one key; the matrix instruction wants keys of one dimension in
// O^T += V^T P^T. A lane (h, c) loads kLaneDims dimensions from lane_dim(c) of the keys 2i + h, pairs keys, and has
// half of the keys; the other half's come through LDS (v_in_lds) or from the twin lane.
#pragma once

#include "arch/gfx11/buffer.h"
#include "arch/gfx11/memory.h"
#include "decode/offsets.h"
#include "decode/softmax.h"

namespace rdna {

class Values {
  using Piece = uint32_t __attribute__((ext_vector_type(kLaneDims / 2)));

 public:
  RDNA_INLINE explicit Values(Lds tile) {
    uint32_t half = lane() / 16, column = lane() % 16;
    // Row r = 2j + h of a fragment is dimension 8h + j of its block, or a dimension of lane r.
    uint32_t dim = 8 * half + column / 2;
    Lds row = tile + (kDimsInOrder ? dim % kLaneDims * kValuePitch + dim / kLaneDims * 16 : column * 16);
    written_ = tile + half * 256 + column * 16;
    own_ = row + half * 256;
    other_ = row + (1 - half) * 256;
    opaque(written_);
    opaque(own_);
    opaque(other_);
  }

  RDNA_INLINE void load(Buffer tile, Offsets &offsets) {
    offsets.keep_apart();
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) rows_[i] = rdna::load<Piece>(tile, offsets.value(i), kKeyBytes);
  }

  RDNA_INLINE void pair() {
#pragma unroll
    for (int block = 0; block < kDimBlocks; ++block) pairs_[block] = paired(block);
  }

  RDNA_INLINE void stage() {
    word4 next = paired(0);
#pragma unroll
    for (int block = 0; block < kDimBlocks; ++block) {
      word4 keys = next;
      if (block + 1 < kDimBlocks) next = paired(block + 1);  // meanwhile: a store does not wait for what it stores
      lds_store(written_ + block * kValuePitch, keys);
      pin_order();
    }
  }

  RDNA_INLINE Fragment fragment(int block) const {
    if constexpr (kValuesInLds) {
      constexpr int step = kDimsInOrder ? 256 / kLaneDims : kValuePitch;
      return rdna::fragment(lds_load<word4>(own_ + block * step), lds_load<word4>(other_ + block * step));
    }
    return with_other_half(kPrefetchValues ? pairs_[block] : paired(block));
  }

 private:
  RDNA_INLINE word4 paired(int block) const {
    word4 keys;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t a = rows_[2 * i][block / 2], b = rows_[2 * i + 1][block / 2];
      keys[i] = block % 2 ? high_pair(a, b) : low_pair(a, b);
    }
    return keys;
  }

  Piece rows_[kValueLoads];
  word4 pairs_[kDimBlocks];
  Lds written_, own_, other_;
};

}  // namespace rdna
