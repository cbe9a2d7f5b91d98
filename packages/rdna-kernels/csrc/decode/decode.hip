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
template <bool kFeatured>
class ScoreExchange {
 public:
  RDNA_INLINE ScoreExchange(Lds buffers, int wave) {
    uint32_t number = wave;
    opaque(number);  // sums with constants then are one address and an immediate, not one address for each other wave
    mine_ = buffers + number * kScoreBytes + lane() * 16;
    wave_ = wave;
    if constexpr (kFewScalars) opaque(wave_);
    if constexpr (kSaveScalars<kFeatured>) opaque(step_);
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
template <bool kFeatured, bool kFolded, bool kChanging>
RDNA_INLINE void attend_tile(const DecodeArguments &arguments, const KeyRange &range, Wave &wave, uint32_t tile,
                             bool first, Buffer next, float residual_factor,
                             ScoreExchange<kFeatured> &exchange, const ScoreChange &change) {
  wait_for_loads_before<kValueLoads>();
  wave.keys.stage();
  Keys::Fragments fragments;
  if constexpr (!kManySums) {
    wave.keys.read_first(wave.query, fragments);
    pin_order();
    wave.keys.load(next, wave.offsets);
  }
  Accumulator scores[kRowTiles];
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    if constexpr (kChanging) {
      scores[i] = change.start(i, wave.states[i], tile * kTileKeys);
    } else {
      scores[i] = repeated(wave.states[i].bias);
    }
  }
  if constexpr (kManySums) wave.keys.read_first(wave.query, fragments);
  pin_order();
  wave.keys.multiply(wave.query, fragments, scores);
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
    Accumulator parts = scores[i];
    if constexpr (kChanging) change.add_base(parts, bases[i], wave.states[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) parts[j] *= scale;  // one by one: a vector's factor would take eight scalar registers
    if (!inner) mask(parts, wave.states[i], tile * kTileKeys, arguments.window);
    keep_below_ceiling<kTwoLoops<kFeatured>>(scores[i], parts, wave.states[i], scale, first, wave.sums[i],
                                             kChanging ? &bases[i] : nullptr);
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

// What the loop over a wave's tiles is told.
struct Work {
  // A copy or not: nothing else differs, but the kernel without features takes fewer instructions this way.
#if RDNA_HEAD_DIM_SPLIT > 1
  const KeyRange &range;
#else
  KeyRange range;
#endif
  WaveTiles tiles;
  Lds lds;
  int wave_number;
  uint32_t column;  // of Q, a lane's
  int first_dim;
  float residual_factor;
};

// A wave's tiles, of which there is one at least; its first is on its way.
template <bool kFeatured, bool kFolded, bool kChanging>
RDNA_INLINE void attend_tiles(const DecodeArguments &arguments, const Place &place, const Work &work, Pages &pages,
                              Wave &wave) {
  const ScoreChange change(arguments, place.features, work.lds + kSlopesAt);
  ScoreExchange<kFeatured> exchange(work.lds + kScoresAt, work.wave_number);
  if constexpr (!kTwoLoops<kFeatured>) pages.turn();
  wave.query.load(place, work.lds, work.column, work.first_dim);
  if constexpr (kTwoLoops<kFeatured>) pages.turn();  // in this order registers suffice
#pragma unroll
  for (int i = 0; i < kRowTiles * kDimBlocks; ++i) wave.sums[i / kDimBlocks][i % kDimBlocks] = {};

  const WaveTiles &tiles = work.tiles;
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
      attend_tile<kFeatured, kFolded, kChanging>(arguments, work.range, wave, tile, tile == tiles.first, following,
                                                 work.residual_factor, exchange, change);
      tile += tiles.step;
      ++next;
    } while (tile < stop);
  } while (tile < tiles.end);
}

// Where an instance of attend() begins. No two are the same, so that the compiler moves nothing that they share before
// it, where it would take registers. Nor is anything on its way: where it puts one instance after the other, it would
// wait in the second for loads of the first.
template <bool kFolded>
RDNA_INLINE void begin_instance() {
  asm volatile("; %0" ::"n"(kFolded));
  wait_for_loads_before<0>();
}

// What the workgroup does once the length and the first page number have been asked for.
template <bool kFeatured, bool kFolded>
RDNA_INLINE void attend(const DecodeArguments &arguments, const DecodeArguments &arguments_after, const Place &place,
                        FirstPage &first_page, int length, Lds lds, uint32_t thread, int wave_number) {
  begin_instance<kFolded>();
  // Meanwhile: Q, and all that K and V need beside those two.
  const QueryLoads query_loads(arguments, place, thread);
  const Slopes slopes(arguments, place, thread);
  const int first_dim = wave_number % kHeadDimSplit * kWaveDims;
  const uint32_t column = lane() % (kFolded ? 8 : 16);
  const uint32_t token_bytes = rdna::token_bytes(arguments);
  const Lds tile_memory = lds + kTilesAt + wave_number * kTileBytes;
  Wave wave = {Offsets(token_bytes, first_dim), Keys(tile_memory), Values(tile_memory)};
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    int token = find_row(arguments, place, smaller<int>(i * 16 + column, place.rows - 1)).token;
    opaque(token);
    wave.states[i].position = token;
  }
  Pages pages(arguments, place, first_page, kSaveScalars<kFeatured>);
  pin_order();
  load_together(first_page.number, length);

  const KeyRange range = find_keys(arguments, place, length);
  if (place.segment >= smaller(range.segments, place.surplus_from)) return;
  const WaveTiles tiles = find_tiles(range, place, wave_number / kHeadDimSplit);
  first_page.find(range, tiles.first);
  pages.begin(range, tiles);
  // Bytes of keys at the first tile's start that no token sees.
  const uint32_t before = larger((int)(range.first_key - tiles.first * kTileKeys), 0) * token_bytes;
  const Buffer first = pages.first(first_page, before);
  Offsets offsets = wave.offsets;
  offsets.move(-before);
  wave.keys.load(first, offsets);
  wave.values.load(first, offsets);
  pin_order();
  const Results results(arguments_after, place);
  if (!kFeatured && range.segments > 1) results.prepare_merge(thread);  // with features there are no registers for it
  query_loads.store(place, lds, thread);
  if (place.features & kFeatureAlibi) slopes.store(lds + kSlopesAt, thread);
  lds_barrier();

  float residual_factor = !kFolded || lane() % 16 >= 8 ? -1.0f : 0.0f;
  opaque(residual_factor);  // a known factor would cost a conversion and a subtraction instead of one instruction
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    wave.states[i] = {range.length - arguments.max_query_len + wave.states[i].position};
  }
  if (tiles.first < tiles.end) {
    int changing = place.features & (kFeatureSoftcap | kFeatureAlibi);
    // Each lane seems to choose for itself: else what the second loop needs would keep its registers in the first.
    if constexpr (kTwoLoops<kFeatured>) opaque(changing);
    const Work work = {range, tiles, lds, wave_number, column, first_dim, residual_factor};
    if (kFeatured && (!kTwoLoops<kFeatured> || changing)) {
      attend_tiles<kFeatured, kFolded, kFeatured>(arguments, place, work, pages, wave);
    } else {
      attend_tiles<kFeatured, kFolded, false>(arguments, place, work, pages, wave);
    }
  } else {
    // Apart from the zeros above, which are made while the first tile is on its way.
#pragma unroll
    for (int i = 0; i < kRowTiles * kDimBlocks; ++i) wave.sums[i / kDimBlocks][i % kDimBlocks] = repeated(0.0f);
  }
  wait_for_loads_before<0>();  // of tiles that do not exist: the merge need not do it again and again
  merge_waves<kFolded>(wave.sums, wave.states, lds, place, results, arguments.scale_log2, range.segments > 1, thread,
                       wave_number);
  if (range.segments > 1) results.merge_partials(range.segments, lds + kFlagAt, thread);
}

// A workgroup at work.
template <bool kFeatured>
RDNA_INLINE void decode(const DecodeArguments &arguments, Lds lds) {
  const int features = kFeatured ? arguments.features : 0;
  const uint32_t thread = thread_in_workgroup();
  int wave = uniform(thread / kWaveSize);
  opaque_uniform(wave);

  load_arguments(arguments);
  pin_order();
  Place place = find_place(arguments, features);
  if (features & kFeaturePlan && place.sequence < 0) return;
  // The length and the first page number are asked for first, for K and V wait for them.
  FirstPage first_page(arguments, place, wave / kHeadDimSplit);
  int length = load_uniform(arguments.seq_lens, place.sequence);
  pin_order();
  find_rows<kFeatured>(arguments, place);
  // With features there are more arguments than registers for them: what comes after the loop reads them again.
  const DecodeArguments &after = kFeatured ? argument_again<DecodeArguments>() : arguments;
  // Where they are too many even so, all are read again, which puts Q behind the length.
  const DecodeArguments &now = kFeatured && kHeadDimSplit > 1 && kMergeHalves ? after : arguments;
  if (kRowTiles == 1 && place.rows <= 8) {
    attend<kFeatured, true>(now, after, place, first_page, length, lds, thread, wave);
  } else {
    attend<kFeatured, false>(now, after, place, first_page, length, lds, thread, wave);
  }
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
