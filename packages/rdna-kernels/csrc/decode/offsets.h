// How a wave's lanes share the rows of a tile in memory: whole rows a load, so that a load asks for whole cache lines.
#pragma once

#include "arch/gfx11/lanes.h"
#include "decode/configuration.h"

namespace rdna {

// K: 16 bytes a lane. V: 16 lanes a row, two rows a load.
constexpr int kKeyLoadRows = kWaveSize / kKeyLanes;
constexpr int kKeyLoads = kTileKeys / kKeyLoadRows;
constexpr int kValueLoads = kTileKeys / 2;

// An offset that no buffer reaches, whatever row's is added to it: a lane there asks memory for nothing and gets zeros.
constexpr uint32_t kNowhere = 1u << 31;

// Dimensions of the head that a wave has, from its first on.
RDNA_INLINE uint32_t dims_from(uint32_t first_dim) {
  return kLastDims == kWaveDims ? kWaveDims : smaller<uint32_t>(kWaveDims, kHeadSize - first_dim);
}

// The first of a wave's `dims` dimensions of V that a lane loads, by the lane's place in its half. A lane that would
// reach past the last one begins earlier, and loads what its neighbour has too.
RDNA_INLINE uint32_t lane_dim(uint32_t column, uint32_t dims) {
  return smaller<uint32_t>(column * kLaneDims, dims - kLaneDims);
}

// Byte offsets of a lane's pieces from the tile's first key.
class Offsets {
 public:
  RDNA_INLINE Offsets(uint32_t token_bytes, int first_dim) {
    const uint32_t dims = dims_from(first_dim);
    uint32_t key_column = first_dim * kElementBytes + smaller<uint32_t>(lane() % kKeyLanes, kWaveDims / 8 - 1) * 16;
    uint32_t value_column = (first_dim + lane_dim(lane() % 16, dims)) * kElementBytes;
    if (kKeyLanes * 8 > kLastDims && lane() % kKeyLanes * 8 >= dims) key_column = kNowhere;
    if (16 * kLaneDims > kLastDims && lane() % 16 * kLaneDims >= dims) value_column = kNowhere;
#pragma unroll
    for (int i = 0; i < kKeyLoads; ++i) keys_[i] = (i * kKeyLoadRows + lane() / kKeyLanes) * token_bytes + key_column;
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) values_[i] = (i * 2 + lane() / 16) * token_bytes + value_column;
    move(0);  // all of this is made here, and not where loads are waited for
  }

  RDNA_INLINE uint32_t key(int load) const { return keys_[load]; }
  RDNA_INLINE uint32_t value(int load) const { return kShared ? keys_[load] : values_[load]; }

  // For V, an immediate is added. To be called in the loop: else the sums are made before it, and take registers.
  RDNA_INLINE void keep_apart() {
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) opaque(kShared ? keys_[i] : values_[i]);
  }

  // Moved back by some keys, the rows of keys before them wrap around to offsets that no buffer reaches.
  RDNA_INLINE void move(uint32_t bytes) {
#pragma unroll
    for (int i = 0; i < kKeyLoads; ++i) opaque(keys_[i] += bytes);
#pragma unroll
    for (int i = 0; i < kValueLoads && !kShared; ++i) opaque(values_[i] += bytes);
  }

 private:
  static constexpr bool kShared = kKeyLanes == 16 && kLaneDims == 8;

  uint32_t keys_[kKeyLoads], values_[kValueLoads];
};

}  // namespace rdna
