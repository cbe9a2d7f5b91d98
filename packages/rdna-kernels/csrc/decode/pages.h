// From tiles of keys to their memory in the paged cache. A lane translates one of the wave's next 32 tiles, so that a
// tile then costs three lane reads; page numbers are loaded 32 tiles ahead.
#pragma once

#include "arch/gfx11/buffer.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/memory.h"
#include "decode/work.h"

namespace rdna {

// A sequence's row of the block table, and the page of a wave's first tile. Without a window or a plan that does not depend
// on the length, and is asked for together with it; else once more.
class FirstPage {
 public:
  RDNA_INLINE FirstPage(const DecodeArguments &arguments, const Place &place, int tile_wave) {
    table = arguments.block_table + place.sequence * arguments.block_table_stride;
    // Where no sequence has keys there may be no table. Any word does, and no wave uses it.
    if (arguments.table_columns == 0) table = arguments.seq_lens;
    page_tiles = (uint32_t)arguments.page_size / kTileKeys;
    tile = place.segment * kTileWaves + tile_wave;
    const int page = uniform(small_quotient(tile, reciprocal((float)page_tiles)));
    place_in_page = tile - page * page_tiles;
    // Past the sequence's last page this is any word of the table.
    number = load_uniform(table, smaller(page, larger(arguments.table_columns - 1, 0)));
  }

  RDNA_INLINE void find(const KeyRange &range, uint32_t first_tile) {
    if (first_tile == tile) return;
    const uint32_t page = smaller(first_tile, range.end_tile - 1) / page_tiles;
    number = load_uniform(table, page);
    place_in_page = first_tile - page * page_tiles;
  }

  const int *table;
  uint32_t page_tiles, tile, place_in_page;
  int number;
};

class Pages {
 public:
  RDNA_INLINE Pages(const DecodeArguments &arguments, const Place &place, const FirstPage &first_page,
                    const KeyRange &range, WaveTiles tiles)
      : first_page_(first_page), tiles_(tiles), length_(range.length), last_tile_(larger<int>(range.end_tile - 1, 0)) {
    page_tiles_ = first_page.page_tiles;
    table_ = address(first_page.table);
    head_ = address(arguments.kv_cache) + place.kv_head * arguments.kv_stride_head * kElementBytes;
    page_bytes_ = arguments.kv_stride_block * kElementBytes;
    token_bytes_ = arguments.kv_stride_token * kElementBytes;
    look_up();
  }

  // The first tile's keys, as far as the sequence has them, but for the bytes of keys at its start that no token sees.
  RDNA_INLINE Buffer first(const KeyRange &range, uint32_t before) {
    first_page_.find(range, tiles_.first);
    const uint64_t at = head_ + (uint32_t)first_page_.number * page_bytes_ +
                        first_page_.place_in_page * (token_bytes_ * kTileKeys);
    const int rows = smaller(length_ - (int)(tiles_.first * kTileKeys), kTileKeys);
    const uint32_t bytes = rows > 0 ? (rows - 1) * (uint32_t)token_bytes_ + 2 * kKeyBytes : 0;
    return buffer(at + before, bytes - before);
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

  FirstPage first_page_;
  WaveTiles tiles_;  // first: of the tiles that turn() is about to bring
  int length_;
  uint32_t last_tile_, page_tiles_;
  uint64_t table_, head_, page_bytes_, token_bytes_;
  uint32_t page_number_, place_in_page_;
  uint32_t low_, high_, bytes_;  // of the present tiles, one a lane
};

}  // namespace rdna
