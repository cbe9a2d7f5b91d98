// Which rows, keys and tiles a workgroup and each of its waves take. All numbers are uniform.
#pragma once

#include "arch/gfx11/math.h"
#include "arch/gfx11/memory.h"
#include "decode/configuration.h"
#include "decode_arguments.h"

namespace rdna {

// One workgroup's place in the grid: x = segment, y = kv head and row group, z = sequence. With a plan, x = the plan's
// row, which names the sequence and the share of its keys.
struct Place {
  int features;  // of the launch, bits of kFeature...
  int segment, kv_head, row_group, sequence;  // sequence -1: a row of a plan that brings no work
  int planned_segments, first_block, blocks;  // of a plan; no segments without one
  int first_row, rows;  // of the kv head's gqa * max_query_len query rows
  int most_rows;        // of any row group: the last may have fewer
  int surplus_from;  // segments: 0 where there are no rows
  int window;        // as large as may be where there is none
  float reciprocal_tokens, reciprocal_blocks;  // 1 / max_query_len, 1 / min_segment_blocks
};

// The arguments that every launch needs lie in two lines of memory: all are asked for before the first is waited for.
RDNA_INLINE void load_arguments(const DecodeArguments &a) {
  asm volatile("" ::"s"(a.q), "s"(a.kv_cache), "s"(a.block_table), "s"(a.seq_lens), "s"(a.out), "s"(a.partial_acc),
               "s"(a.partial_max), "s"(a.partial_sum), "s"(a.counters), "s"(a.q_stride_token), "s"(a.q_stride_head),
               "s"(a.out_stride_token), "s"(a.out_stride_head), "s"(a.kv_stride_block), "s"(a.kv_stride_head),
               "s"(a.kv_stride_token), "s"(a.block_table_stride), "s"(a.table_columns), "s"(a.num_kv_heads),
               "s"(a.gqa), "s"(a.max_query_len), "s"(a.page_size), "s"(a.window), "s"(a.row_groups),
               "s"(a.max_segments), "s"(a.min_segment_blocks), "s"(a.scale_log2));
}

// A kernel that serves no features passes a constant 0, and all that asks for one is gone.
RDNA_INLINE Place find_place(const DecodeArguments &arguments, int features) {
  Place place;
  place.features = features;
  place.segment = __builtin_amdgcn_workgroup_id_x();
  place.sequence = __builtin_amdgcn_workgroup_id_z();
  place.planned_segments = place.first_block = place.blocks = 0;
  if (features & kFeaturePlan) {
    int64_t row = place.segment * 4;
    uint32_t segment = load_uniform(arguments.plan, row + 1);
    place.sequence = load_uniform(arguments.plan, row);
    place.segment = segment & 0xffff;
    place.planned_segments = segment >> 16;
    place.first_block = load_uniform(arguments.plan, row + 2);
    place.blocks = load_uniform(arguments.plan, row + 3);
  }
  return place;
}

template <bool kFeatured>
RDNA_INLINE void find_rows(const DecodeArguments &arguments, Place &place) {
  int group = __builtin_amdgcn_workgroup_id_y();
  place.kv_head = uniform(small_quotient(group, reciprocal((float)arguments.row_groups)));
  place.row_group = group - place.kv_head * arguments.row_groups;
  int total = arguments.gqa * arguments.max_query_len;
  place.most_rows = uniform(small_quotient(total + arguments.row_groups - 1, reciprocal((float)arguments.row_groups)));
  place.first_row = place.row_group * place.most_rows;
  place.rows = larger(smaller(total - place.first_row, place.most_rows), 0);
  place.surplus_from = place.rows > 0 ? 0x7fffffff : 0;
  place.window = arguments.window ? arguments.window : 0x7fffffff;
  if constexpr (!kFeatured) {  // made here, not after the length is there; with features there are no registers for it
    opaque_uniform(place.surplus_from);
    opaque_uniform(place.window);
  }
  place.reciprocal_tokens = reciprocal((float)arguments.max_query_len);
  if constexpr (!kSaveScalars<kFeatured>) {
    place.reciprocal_tokens = bits<float>(uniform(bits<int>(place.reciprocal_tokens)));
  }
  place.reciprocal_blocks = bits<float>(uniform(bits<int>(reciprocal((float)arguments.min_segment_blocks))));
}

// Strides of q, kv_cache and out come in units of 16 bytes, so that 32 bits hold any.
RDNA_INLINE uint64_t strides(uint32_t count, uint32_t stride) { return (uint64_t)count * stride << 4; }

// Of a row: one shift for both.
RDNA_INLINE uint64_t row_offset(uint32_t token, uint32_t token_stride, uint32_t head, uint32_t head_stride) {
  return ((uint64_t)token * token_stride + (uint64_t)head * head_stride) << 4;
}

// From a key to the next; the host sees to it that those of a tile are less than 2^31 apart.
RDNA_INLINE uint32_t token_bytes(const DecodeArguments &arguments) { return arguments.kv_stride_token * 16; }

// A query row: its head within the kv head's group, and its token.
struct Row {
  int head, token;
};

RDNA_INLINE Row find_row(const DecodeArguments &arguments, const Place &place, int row) {
  int index = place.first_row + row;
  int head = small_quotient(index, place.reciprocal_tokens);
  return {head, index - head * arguments.max_query_len};
}

// The keys of a sequence that any row sees, as tiles of 16; the last may be partly filled.
struct KeyRange {
  int length;                         // keys of the sequence
  uint32_t first_key;                 // seen by its first query token
  uint32_t first_tile, end_tile;      // tiles with a key that is seen
  uint32_t first_inner, inner_tiles;  // tiles that every row sees in full: they need no mask
  int segments;                       // workgroups that share them
};

RDNA_INLINE KeyRange find_keys(const DecodeArguments &arguments, const Place &place, uint32_t length) {
  KeyRange keys;
  keys.length = length;
  const uint32_t first_end = larger(keys.length - arguments.max_query_len + 1, 0);  // keys of the first query token
  const uint32_t last_start = larger(keys.length - place.window, 0);  // of the last one
  keys.first_key = larger<int>(first_end - place.window, 0);
  keys.first_tile = keys.first_key / kTileKeys;
  keys.end_tile = (length + kTileKeys - 1) / kTileKeys;
  keys.first_inner = (last_start + kTileKeys - 1) / kTileKeys;
  keys.inner_tiles = larger<int>(first_end / kTileKeys - keys.first_inner, 0);

  constexpr uint32_t block_keys = kTileKeys * kTileWaves;
  int blocks = (length + block_keys - 1) / block_keys - keys.first_key / block_keys;
  int wanted = uniform(small_quotient(blocks, place.reciprocal_blocks));
  keys.segments = larger(place.planned_segments ? place.planned_segments : smaller(wanted, arguments.max_segments), 1);
  return keys;
}

// The tiles of one wave: first, first + step, ... below end.
struct WaveTiles {
  uint32_t first, step, end;
};

// Segments take blocks of kTileWaves tiles in turn; those of a plan have theirs in a row, and the last one has the rest.
RDNA_INLINE WaveTiles find_tiles(const KeyRange &keys, const Place &place, int tile_wave) {
  const bool planned = place.planned_segments;
  WaveTiles tiles;
  tiles.first = keys.first_tile + (planned ? place.first_block : place.segment) * kTileWaves + tile_wave;
  tiles.step = (planned ? 1 : keys.segments) * kTileWaves;
  tiles.end = keys.end_tile;
  if (planned && place.segment + 1 < keys.segments) {
    tiles.end = smaller<uint32_t>(tiles.end, keys.first_tile + (place.first_block + place.blocks) * kTileWaves);
  }
  // Waves that share tiles meet in each one: all take as many as the first wave, if need be past the end.
  if (kHeadDimSplit > 1) tiles.end += tile_wave;
  return tiles;
}

}  // namespace rdna
