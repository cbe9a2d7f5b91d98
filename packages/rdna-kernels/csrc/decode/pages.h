// From tiles of keys to their memory in the paged cache. A lane translates one of the wave's next 32 tiles, so that a
// tile then costs three lane reads; page numbers are loaded 32 tiles ahead.
#pragma once

#include "arch/gfx11/buffer.h"
#include "arch/gfx11/lanes.h"
#include "arch/gfx11/memory.h"
#include "decode/offsets.h"
#include "decode/work.h"

namespace rdna {

// A sequence's row of the block table, and the page of a wave's first tile. Without a window or a plan that does not depend
// on the length, and is asked for together with it; else once more.
class FirstPage {
 public:
  RDNA_INLINE FirstPage(const DecodeArguments &arguments, const Place &place, int tile_wave) {
    table = arguments.block_table + (uint64_t)(uint32_t)place.sequence * arguments.block_table_stride;
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
    const uint32_t page = smaller(first_tile, larger(range.end_tile, 1u) - 1) / page_tiles;
    number = load_uniform(table, page);
    place_in_page = first_tile - page * page_tiles;
  }

  const int *table;
  uint32_t page_tiles, tile, place_in_page;
  int number;
};

class Pages {
 public:
  // All that does not depend on the length.
  RDNA_INLINE Pages(const DecodeArguments &arguments, const Place &place, const FirstPage &first_page,
                    bool save_scalars)
      : page_tiles_(first_page.page_tiles), table_(address(first_page.table)) {
    head_ = address(arguments.kv_cache) + strides(place.kv_head, arguments.kv_stride_head);
    page_stride_ = arguments.kv_stride_block;
    token_bytes_ = token_bytes(arguments);
    // 2^32 / page_tiles, or one or two less.
    inverse_ = uniform((uint32_t)(reciprocal((float)page_tiles_) * 4294966784.0f));
    inverse_ = uniform(inverse_ + multiply_high(inverse_, -page_tiles_ * inverse_));
    opaque_uniform(head_);
    opaque_uniform(inverse_);
    if (kFewScalars || save_scalars) {
      opaque(inverse_);
      opaque(page_tiles_);
    }
  }

  RDNA_INLINE void begin(const KeyRange &range, WaveTiles tiles) {
    tiles_ = tiles;
    length_ = range.length;
    end_tile_ = range.end_tile;
    look_up();
  }

  // The first tile's keys, as far as the sequence has them, but for the bytes of keys at its start that no token sees.
  RDNA_INLINE Buffer first(const FirstPage &page, uint32_t before) const {
    const uint64_t at = head_ + strides(page.number, page_stride_) + tile_offset(page.place_in_page);
    const int rows = smaller(length_ - (int)(tiles_.first * kTileKeys), kTileKeys);
    const uint32_t bytes = rows > 0 ? (rows - 1) * token_bytes_ + 2 * kKeyBytes : 0;
    return buffer(at + before, bytes - before);
  }

  // The next 32 tiles become the present ones. The first call brings tiles 0-31 of the wave.
  RDNA_INLINE void turn() {
    uint64_t at = head_ + strides(page_number_, page_stride_) + tile_offset(place_in_page_);
    low_ = (uint32_t)at;
    high_ = (uint32_t)(at >> 32);
    int rows = smaller(length_ - (int)((tiles_.first + lane() * tiles_.step) * kTileKeys), kTileKeys);
    bytes_ = rows > 0 ? (rows - 1) * token_bytes_ + 2 * kKeyBytes : 0;
    tiles_.first += kWaveSize * tiles_.step;
    if (tiles_.first < tiles_.end) look_up();
  }

  // Address and size of one of the present tiles, as far as the sequence has keys there; past its end: empty.
  RDNA_INLINE uint64_t start(int tile) const {
    return (uint64_t)from_lane(high_, tile) << 32 | from_lane(low_, tile);
  }
  RDNA_INLINE uint32_t bytes(int tile) const { return from_lane(bytes_, tile); }

 private:
  RDNA_INLINE uint64_t tile_offset(uint32_t tile) const { return (uint64_t)(tile * kTileKeys) * token_bytes_; }

  // Entries past the sequence's last page may not exist, and are not asked for.
  RDNA_INLINE void look_up() {
    uint32_t tile = tiles_.first + lane() * tiles_.step;
    uint32_t page = multiply_high(tile, inverse_);
    place_in_page_ = tile - page * page_tiles_;
    bool short_by_one = place_in_page_ >= page_tiles_;  // never by more, for there are fewer than 2^27 tiles
    page += short_by_one ? 1 : 0;
    place_in_page_ -= short_by_one ? page_tiles_ : 0;
    const Buffer table = buffer(table_, kNowhere);
    page_number_ = rdna::load<uint32_t>(table, tile < end_tile_ ? page * (uint32_t)sizeof(int) : kNowhere);
  }

  WaveTiles tiles_;  // first: of the tiles that turn() is about to bring
  int length_;
  uint32_t end_tile_, page_tiles_, inverse_;
  uint32_t page_stride_, token_bytes_;
  uint64_t table_, head_;
  uint32_t page_number_, place_in_page_;
  uint32_t low_, high_, bytes_;  // of the present tiles, one a lane
};

}  // namespace rdna
