// How a wave's lanes share the rows of a tile in memory: whole rows a load, so that a load asks for whole cache lines.
#pragma once

#include "arch/gfx11/lanes.h"
#include "decode/configuration.h"

namespace rdna {

// K: 16 bytes a lane. V: 16 lanes a row, two rows a load.
constexpr int kKeyLoadRows = kWaveSize / kKeyLanes;
constexpr int kKeyLoads = kTileKeys / kKeyLoadRows;
constexpr int kValueLoads = kTileKeys / 2;

// The first of a wave's dimensions of V that a lane loads, by the lane's place in its half. Where the lanes would reach
// past the last dimension, the last ones begin earlier and load what others have too.
RDNA_INLINE uint32_t lane_dim(uint32_t column) { return smaller<uint32_t>(column * kLaneDims, kWaveDims - kLaneDims); }

// Byte offsets of a lane's pieces from the tile's first key.
class Offsets {
 public:
  RDNA_INLINE Offsets(uint32_t token_bytes, int first_dim) {
    uint32_t key_column = first_dim * kElementBytes + smaller<uint32_t>(lane() % kKeyLanes, kWaveDims / 8 - 1) * 16;
    uint32_t value_column = (first_dim + lane_dim(lane() % 16)) * kElementBytes;
#pragma unroll
    for (int i = 0; i < kKeyLoads; ++i) keys_[i] = (i * kKeyLoadRows + lane() / kKeyLanes) * token_bytes + key_column;
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) values_[i] = (i * 2 + lane() / 16) * token_bytes + value_column;
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
