// Decode attention: a few query tokens of each sequence against its paged KV cache. csrc/README.md explains the steps,
// decode_arguments.py the arguments.
#include "decode/keys.h"
#include "decode/merge.h"
#include "decode/pages.h"
#include "decode/query.h"
#include "decode/scores.h"
#include "decode/softmax.h"
#include "decode/values.h"
#include "decode/work.h"

namespace rdna {

// The waves that share a tile have each made scores of their dimensions: the sum is the score, added up by pairs of
// waves, pairs of pairs and so on, which gives the same bits in each. Two buffers in turn: one barrier a tile is enough.
class ScoreExchange {
 public:
  RDNA_INLINE ScoreExchange(Lds buffers, int wave) {
    uint32_t number = wave;
    opaque(number);  // sums with constants then are one address and an immediate, not one address for each other wave
    mine_ = buffers + number * kScoreBytes + lane() * 16;
    wave_ = wave;
  }

  RDNA_INLINE void add(Accumulator (&scores)[kRowTiles]) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      lds_store(mine_ + tile * 1024, scores[tile].lo);
      lds_store(mine_ + tile * 1024 + 512, scores[tile].hi);
    }
    lds_barrier();
    add_pairs<1>(scores);
    mine_ += step_;
    step_ = -step_;
  }

 private:
  template <int kSpan>
  RDNA_INLINE void add_pairs(Accumulator (&scores)[kRowTiles]) const {
    if constexpr (kSpan < kHeadDimSplit) {
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) scores[tile] += sum_of<kSpan, kSpan>(tile);
      add_pairs<2 * kSpan>(scores);
    }
  }

  // The scores of the kCount waves whose numbers differ from this one's by kFirst and by less than kCount.
  template <int kFirst, int kCount>
  RDNA_INLINE Accumulator sum_of(int tile) const {
    if constexpr (kCount > 1) {
      return sum_of<kFirst, kCount / 2>(tile) + sum_of<kFirst + kCount / 2, kCount / 2>(tile);
    } else {
      Lds other = mine_ + ((wave_ ^ kFirst) - wave_) * kScoreBytes + tile * 1024;
      return joined(lds_load<float4>(other), lds_load<float4>(other + 512));
    }
  }

  Lds mine_;
  int wave_;
  int step_ = kWaves * kScoreBytes;
};

// A wave at work: where it finds a tile, what it has of the present one, and what it has made of those so far.
struct Wave {
  Offsets offsets;
  Keys keys;
  Values values;
  Query query;
  RowState states[kRowTiles];
  Accumulator sums[kRowTiles][kDimBlocks];
};

// One tile: scores, weights, sums. The next tile's loads go out as soon as this one's registers are free.
template <bool kFolded, bool kChanging>
RDNA_INLINE void attend_tile(const DecodeArguments &arguments, const KeyRange &range, Wave &wave, uint32_t tile,
                             bool first, Buffer next, float residual_factor, ScoreExchange &exchange,
                             const ScoreChange &change) {
  wait_for_loads_before<kValueLoads>();
  wave.keys.stage();
  if constexpr (!kManySums) wave.keys.load(next, wave.offsets);
  pin_order();
  Accumulator scores[kRowTiles];
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) scores[i] = kChanging ? change.start(i) : repeated(wave.states[i].bias);
  wave.keys.multiply(wave.query, scores);
  if constexpr (kValuesInLds) {
    wait_for_loads_before<kManySums ? 0 : kKeyLoads>();
    wave.values.stage();
  }
  if constexpr (kManySums) wave.keys.load(next, wave.offsets);
  if constexpr (kValuesInLds && !kManySums) wave.values.load(next, wave.offsets);
  pin_order();
  if constexpr (kHeadDimSplit > 1) exchange.add(scores);
  float bases[kRowTiles];
  if constexpr (kChanging) change.finish(scores, wave.states, tile * kTileKeys, bases);

  constexpr int ahead = kValuesInLds ? kFragmentsAhead : 0;
  Fragment dims[kDimBlocks];
#pragma unroll
  for (int block = 0; block < ahead; ++block) dims[block] = wave.values.fragment(block);

  const bool inner = tile - range.first_inner < range.inner_tiles;
  const float scale = arguments.scale_log2;
  Weights weights[kRowTiles];
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    Accumulator parts = kChanging ? change.scaled(scores[i], bases[i], wave.states[i], scale) : scores[i] * scale;
    if (!inner) mask(parts, wave.states[i], tile * kTileKeys, arguments.window);
    keep_below_ceiling(scores[i], parts, wave.states[i], scale, first, wave.sums[i], kChanging ? &bases[i] : nullptr);
    exponentiate(parts, wave.states[i]);
    weights[i] = split<kFolded>(parts, residual_factor);
  }

  if constexpr (!kValuesInLds) wait_for_loads_before<kKeyLoads>();
  if constexpr (kPrefetchValues) {
    wave.values.pair();
    wave.values.load(next, wave.offsets);
  }
  pin_order();
#pragma unroll
  for (int block = 0; block < kDimBlocks; ++block) {
    if (block + ahead < kDimBlocks) dims[block + ahead] = wave.values.fragment(block + ahead);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      Accumulator &sum = wave.sums[i][block];
      if constexpr (!kFolded) sum = Element::multiply_add(dims[block], weights[i].high, sum);
      sum = Element::multiply_add(dims[block], weights[i].low, sum);
    }
    pin_order();
  }
  if constexpr (!kPrefetchValues && (!kValuesInLds || kManySums)) wave.values.load(next, wave.offsets);
}

// All tiles of a wave, and the meeting of the waves.
template <bool kFolded, bool kChanging>
RDNA_INLINE void attend(const DecodeArguments &arguments, const Place &place, const KeyRange &range,
                        const WaveTiles &tiles, Pages &pages, const Results &results, Lds lds, uint32_t thread,
                        int wave_number) {
  const ScoreChange change(arguments, place.features, lds + kSlopesAt);
  const int first_dim = wave_number % kHeadDimSplit * kWaveDims;
  const int column = lane() % (kFolded ? 8 : 16);
  const uint32_t token_bytes = arguments.kv_stride_token * kElementBytes;
  const Lds tile_memory = lds + kTilesAt + wave_number * kTileBytes;
  float residual_factor = !kFolded || lane() % 16 >= 8 ? -1.0f : 0.0f;
  opaque(residual_factor);  // a known factor would cost a conversion and a subtraction instead of one instruction

  Wave wave = {Offsets(token_bytes, first_dim), Keys(tile_memory), Values(tile_memory)};
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    Row row = find_row(arguments, place, smaller(i * 16 + column, place.rows - 1));
    wave.states[i].position = range.length - arguments.max_query_len + row.token;
  }
  if (tiles.first < tiles.end) {
    ScoreExchange exchange(lds + kScoresAt, wave_number);
    const uint32_t before = larger((int)(range.first_key - tiles.first * kTileKeys), 0) * token_bytes;
    const Buffer first = pages.first(range, before);
    wave.offsets.move(-before);
    wave.keys.load(first, wave.offsets);
    wave.values.load(first, wave.offsets);
    pin_order();
    wave.offsets.move(before);
    pages.turn();
    wave.query.load(place, lds, column, first_dim);

    uint32_t tile = tiles.first;
    int next = 1;
    do {
      if (next == kWaveSize) {
        pages.turn();
        next = 0;
      }
      const uint32_t stop = smaller(tiles.end, tile + (kWaveSize - next) * tiles.step);
      do {
        Buffer following = buffer(pages.start(next), pages.bytes(next));
        attend_tile<kFolded, kChanging>(arguments, range, wave, tile, tile == tiles.first, following, residual_factor,
                                        exchange, change);
        tile += tiles.step;
        ++next;
      } while (tile < stop);
    } while (tile < tiles.end);
  }
  lds_barrier();
  merge_waves<kFolded>(wave.sums, wave.states, lds, place, results, arguments.scale_log2, range.segments > 1, thread,
                       wave_number);
}

template <bool kChanging>
RDNA_INLINE void attend_rows(const DecodeArguments &arguments, const Place &place, const KeyRange &range,
                             const WaveTiles &tiles, Pages &pages, const Results &results, Lds lds, uint32_t thread,
                             int wave) {
  if (kRowTiles == 1 && place.rows <= 8) {
    attend<true, kChanging>(arguments, place, range, tiles, pages, results, lds, thread, wave);
  } else {
    attend<false, kChanging>(arguments, place, range, tiles, pages, results, lds, thread, wave);
  }
}

// A workgroup at work.
template <bool kFeatured>
RDNA_INLINE void decode(const DecodeArguments &arguments, Lds lds) {
  const int features = kFeatured ? arguments.features : 0;
  const uint32_t thread = thread_in_workgroup();
  const int wave = uniform(thread / kWaveSize);

  // The arguments lie in two lines of memory: both are asked for before the first is waited for.
  const void *first_line = arguments.kv_cache;
  asm volatile("" : "+s"(first_line));
  const Place place = find_place(arguments, features);
  if (place.rows <= 0 || (features & kFeaturePlan && place.sequence < 0)) return;
  // Q, the length and the first page number are asked for at once, the others as soon as the length is there.
  const QueryLoads query_loads(arguments, place, thread);
  FirstPage first_page(arguments, place, wave / kHeadDimSplit);
  pin_order();
  int length = load_uniform(arguments.seq_lens, place.sequence);
  load_together(first_page.number, length);
  const KeyRange keys = find_keys(arguments, place, length);
  if (place.segment >= keys.segments) return;
  const WaveTiles tiles = find_tiles(keys, place, wave / kHeadDimSplit);
  Pages pages(arguments, place, first_page, keys, tiles);
  pin_order();
  query_loads.store(place, lds, thread);
  if (features & kFeatureAlibi) put_slopes(arguments, place, lds + kSlopesAt, thread);
  lds_barrier();
  // With features there are more arguments than registers for them: what comes after the loop reads them again.
  const Results results(kFeatured ? argument_again<DecodeArguments>() : arguments, place);
  // Scores that change have a loop of their own; with several row tiles two loops spill, and that one serves all.
  if (kFeatured && (kRowTiles > 1 || features & (kFeatureSoftcap | kFeatureAlibi))) {
    attend_rows<true>(arguments, place, keys, tiles, pages, results, lds, thread, wave);
  } else {
    attend_rows<false>(arguments, place, keys, tiles, pages, results, lds, thread, wave);
  }
  if (keys.segments > 1) results.merge_partials(keys.segments, lds + kFlagAt, thread);
}

}  // namespace rdna

// A build's kernel, and beside it the one for launches with features: so the former costs what it did without them.
// The bound on the workgroup is exact: the default one of 1024 threads would leave a wave 192 registers a lane.
#define RDNA_KERNEL extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(rdna::kThreads, rdna::kThreads)))

RDNA_KERNEL void RDNA_KERNEL_NAME(DecodeArguments arguments) {
  __shared__ __attribute__((aligned(16))) char memory[rdna::kLdsBytes];
  rdna::decode<false>(arguments, (rdna::Lds)memory);
}

#define RDNA_JOINED(name, suffix) name##suffix
#define RDNA_FEATURES_NAME(name) RDNA_JOINED(name, _features)

RDNA_KERNEL void RDNA_FEATURES_NAME(RDNA_KERNEL_NAME)(DecodeArguments arguments) {
  __shared__ __attribute__((aligned(16))) char memory[rdna::kFeatureLdsBytes];
  rdna::decode<true>(arguments, (rdna::Lds)memory);
}
