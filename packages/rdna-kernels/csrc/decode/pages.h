// From tiles of keys to their memory in the paged cache. A lane translates one of the wave's next 32 tiles, so that a
// tile then costs three lane reads; page numbers are loaded 32 tiles ahead.
#pragma once

#include "arch/gfx11/buffer.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/memory.h"
#include "decode/work.h"

namespace rdna {

class Pages {
 public:
  RDNA_INLINE Pages(const DecodeArguments &arguments, const Place &place, const KeyRange &range, WaveTiles tiles)
      : tiles_(tiles), length_(range.length), last_tile_(larger<int>(range.end_tile - 1, 0)) {
    page_tiles_ = (uint32_t)arguments.page_size / kTileKeys;
    table_ = address(arguments.block_table + place.sequence * arguments.block_table_stride);
    // A sequence without keys may have no entry. Any word does, and no wave uses it.
    if (range.length == 0) table_ = address(arguments.seq_lens + place.sequence);
    head_ = address(arguments.kv_cache) + place.kv_head * arguments.kv_stride_head * kElementBytes;
    page_bytes_ = arguments.kv_stride_block * kElementBytes;
    token_bytes_ = arguments.kv_stride_token * kElementBytes;
    look_up();
  }

  // The next 32 tiles become the present ones. The first call brings tiles 0-31 of the wave.
  RDNA_INLINE void turn() {
    uint64_t at = head_ + page_number_ * page_bytes_ + place_in_page_ * (token_bytes_ * kTileKeys);
    low_ = (uint32_t)at;
    high_ = (uint32_t)(at >> 32);
    int rows = smaller(length_ - (int)((tiles_.first + lane() * tiles_.step) * kTileKeys), kTileKeys);
    bytes_ = rows > 0 ? (rows - 1) * (uint32_t)token_bytes_ + 2 * kKeyBytes : 0;
    tiles_.first += kWaveSize * tiles_.step;
    if (tiles_.first < tiles_.end) look_up();
  }

  // Address and size of one of the present tiles, as far as the sequence has keys there; past its end: empty.
  RDNA_INLINE uint64_t start(int tile) const {
    return (uint64_t)from_lane(high_, tile) << 32 | from_lane(low_, tile);
  }
  RDNA_INLINE uint32_t bytes(int tile) const { return from_lane(bytes_, tile); }

 private:
  // Entries past the sequence's last page may not exist: there, the last one is looked up again.
  RDNA_INLINE void look_up() {
    uint32_t tile = smaller(tiles_.first + lane() * tiles_.step, last_tile_);
    uint32_t page = tile / page_tiles_;
    place_in_page_ = tile - page * page_tiles_;
    page_number_ = load<uint32_t>(table_, page * sizeof(int));
  }

  WaveTiles tiles_;  // first: of the tiles that turn() is about to bring
  int length_;
  uint32_t last_tile_, page_tiles_;
  uint64_t table_, head_, page_bytes_, token_bytes_;
  uint32_t page_number_, place_in_page_;
  uint32_t low_, high_, bytes_;  // of the present tiles, one a lane
};

}  // namespace rdna
