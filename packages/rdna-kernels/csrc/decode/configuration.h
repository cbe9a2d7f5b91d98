// What a build fixes (its -D definitions) and what follows from it. Heads, gqa, query tokens, pages and windows are
// arguments of the launch.
#pragma once

#include "arch/gfx11/device.h"
#include "arch/gfx11/lds.h"

namespace rdna {

constexpr int kHeadSize = RDNA_HEAD_SIZE;
constexpr int kRows = RDNA_ROWS;  // query rows of a workgroup, padded to 16
constexpr int kWaves = RDNA_WAVES;
constexpr int kHeadDimSplit = RDNA_HEAD_DIM_SPLIT;  // waves that share a key tile, by head dimensions
constexpr int kThreads = kWaves * kWaveSize;
constexpr int kTileKeys = 16;                       // keys that a wave takes at a time
constexpr int kTileWaves = kWaves / kHeadDimSplit;  // tiles that a workgroup takes at a time

// Head dimensions of a wave: whole steps of the matrix instruction, which leave the last wave kLastDims of the head's.
// The others of that wave are zero in Q and K, are not read of V, and no one reads their sums.
constexpr int kWaveDims = larger((kHeadSize + 16 * kHeadDimSplit - 1) / (16 * kHeadDimSplit) * 16, 48);
constexpr int kLastDims = kHeadSize - (kHeadDimSplit - 1) * kWaveDims;
constexpr int kKeyBlocks = kWaveDims / 16;           // matrix instructions along them, for scores
constexpr int kLaneDims = (kKeyBlocks + 1) / 2 * 2;  // of V that a lane loads of a key: whole words
constexpr int kDimBlocks = kLaneDims;                // matrix instructions along the dimensions, for the output
constexpr int kRowTiles = kRows / 16;
constexpr int kElementBytes = 2;
constexpr int kKeyBytes = kHeadSize * kElementBytes;  // of K or V of one key

// Accumulators beyond 64 registers a lane leave no room for query fragments nor for V, and loads go out later.
constexpr bool kManySums = kRowTiles * kDimBlocks > 8;
constexpr bool kValuesInLds = RDNA_V_IN_LDS != 0 || kManySums;
constexpr bool kPrefetchValues = RDNA_PREFETCH != 0 && !kValuesInLds;

// Query fragments that stay in registers, of a row tile's kKeyBlocks; the others are read from LDS for each tile.
constexpr int kQueryBlocks = kManySums ? 0 : smaller(kKeyBlocks, (kHeadDimSplit > 1 ? 6 : 7) / kRowTiles);

// Fragments of K and V that are read from LDS before the first is needed, and of queries that are read for each tile:
// enough for its latency, few enough for the registers.
constexpr bool kRoomAhead = kRowTiles * kDimBlocks < 8 || (kScalarFloats && kHeadDimSplit == 1 && !kManySums);
constexpr int kFragmentsAhead = kRoomAhead ? 2 : 1;
constexpr int kQueriesAhead = kManySums ? 1 : kFragmentsAhead == 2 ? 2 : 0;

// Lanes that share a row of K, 16 bytes each: a power of two. Those past the row's end load nothing and get zeros.
constexpr int kKeyLanes = kKeyBlocks <= 4 ? 8 : 16;

// A tile of K in LDS: 16 rows. A tile of V: for each dimension that one lane loads, both halves' keys of all lanes.
constexpr int kKeyPitch = lds_pitch(kKeyLanes * 16);
constexpr int kValuePitch = lds_pitch(2 * 16 * 16);
constexpr int kTileBytes = larger(kTileKeys * kKeyPitch, kValuesInLds ? kDimBlocks * kValuePitch : 0);

constexpr int kQueryPitch = lds_pitch(kHeadDimSplit * kWaveDims * kElementBytes);
constexpr int kTilesAt = kRows * kQueryPitch;
constexpr int kScoresAt = kTilesAt + kWaves * kTileBytes;
constexpr int kScoreBytes = kRowTiles * kWaveSize * (int)sizeof(float8);  // of one wave, where waves share a tile
constexpr int kLoopBytes = kScoresAt + (kHeadDimSplit > 1 ? 2 * kWaves * kScoreBytes : 0);

// Where V goes through LDS, a block of sums has 16 dimensions in a row; else, or where a lane's do not divide 16, one
// dimension of each lane.
constexpr bool kDimsInOrder = kValuesInLds && 16 % kLaneDims == 0;

// The waves' results meet in LDS, 16 rows and so many dimensions at a time that they fit: all, or half of each wave's.
// With 8 rows or fewer the halves fit together, if what the residuals gave is added before.
constexpr int kWaveSums = 16 * kLaneDims;  // of a row: a wave's dimensions, some twice where lanes overlap
constexpr int kMergeBytes = kTileWaves * 16 * lds_pitch(kHeadDimSplit * kWaveSums * 4);
constexpr bool kMergeHalves =
    16 % kLaneDims == 0 && (kHeadDimSplit == 1 || kLastDims == kWaveDims) && kMergeBytes > 40 * 1024;

template <bool kFolded>
struct Merge {
  static constexpr bool kFoldsFirst = kFolded && kMergeHalves;
  static constexpr int kRows = kFoldsFirst ? 8 : 16;
  static constexpr int kPasses = kMergeHalves && !kFoldsFirst ? 2 : 1;
  static constexpr int kSums = kWaveSums / kPasses;                               // of a wave in a row
  static constexpr int kWaveDims = rdna::kWaveDims / kPasses;                     // of the head, of a wave
  static constexpr int kDims = kPasses > 1 ? kHeadDimSplit * kWaveDims : kHeadSize;  // of the head, at most
  static constexpr int kPitch = lds_pitch(kHeadDimSplit * kSums * 4);
  static constexpr int kBytes = kTileWaves * kRows * kPitch;
};
constexpr int kSharesAt = larger(Merge<false>::kBytes, Merge<true>::kBytes);
constexpr int kFlagAt = kSharesAt + kTileWaves * kRows * (int)sizeof(float) * 2;
constexpr int kLdsBytes = larger(kLoopBytes, kFlagAt + 16);

// Where scalar registers are short, vector registers are not, and keep some of what is the same in all lanes.
constexpr bool kFewScalars = kWaveDims < 128;

// The kernel with features has two loops, one for scores that change; with several row tiles two would spill, and that
// one serves all. Two take more scalar registers, and few vector registers are left.
template <bool kFeatured>
constexpr bool kTwoLoops = kFeatured && kRowTiles == 1;
template <bool kFeatured>
constexpr bool kSaveScalars = kTwoLoops<kFeatured> && kHeadDimSplit > 1;

// It has a slope for each row, too.
constexpr int kSlopesAt = kLoopBytes;
constexpr int kFeatureLdsBytes = larger(kSlopesAt + kRows * (int)sizeof(float), kLdsBytes);

static_assert(kHeadSize % 8 == 0 && kWaveDims <= 128 && kLastDims > 0, "a wave has at most 128 dimensions of a head");
static_assert(kRows % 16 == 0 && kWaves % kHeadDimSplit == 0 && (kHeadDimSplit & (kHeadDimSplit - 1)) == 0);
static_assert(RDNA_DOT_PRODUCT == 0, "the dot-product form is another kernel");
static_assert(kFeatureLdsBytes <= 64 * 1024, "a workgroup has 64 KiB of LDS");

}  // namespace rdna
