// What a worker remembers of B: its columns as the host wants them, and which of them repeat others. Kernels multiply
// one B by many A, and those with few query rows repeat columns: the results of half or three quarters of the columns
// are then to be had for nothing.
#pragma once
#include <array>
#include <memory>

#include "isa/op.hpp"
#include "run/launch.hpp"
#include "valu/matrix.hpp"
#include "valu/matrix_links.hpp"

namespace rdna {

RDNA_INLINE u32 sign_mask(const InstInfo& info, int k) {
  return (info.neg_lo >> k & 1 ? 0x8000u : 0u) | (info.neg_hi >> k & 1 ? 0x80000000u : 0u);
}

struct Reading {
  const Inst* inst = nullptr;  // null: it is not told from others
  const Wave* wave = nullptr;
  u64 entered = 0;  // how often a wave had come into the loop around it
  u64 begun = 0;    // waves of the worker
  bool is(const Reading& other) const {
    return inst && inst == other.inst && wave == other.wave && entered == other.entered && begun == other.begun;
  }
};

struct alignas(256) KnownColumns {
  u32 raw[kDepth / 2][kLanes] = {};  // the registers that the rest was made of
  u32 reg = ~0u, signs = 0;
  u8 format = 0;                     // 0: nothing is known
  Reading reading;                   // the last one
  int count = kHalf;                 // columns that are multiplied: 4, 8 or all 16
  bool twice = false;                // all 16: whether the upper half of the wave has those of the lower one
  Block<u32, kHalf> source = 0u;     // where the first equal column is
  Block<u32, kHalf> gather = 0u;     // 4: lanes of both halves in turns; 8: those of the lower half, then of the upper
  Block<u32, kHalf> spread[2] = {};  // of the sums, for each half of D
  Columns<double> columns;           // of 16 by lane; of fewer as `gather` has them
};

// B of few columns are small: each register has a place. Of those with 16 the last are kept, as many as a loop over the
// dimensions of Q and V asks for.
class MatrixMemory {
 public:
  explicit MatrixMemory(const Program& program) : links(link_matrices(program)) {}

  const std::vector<MatrixLink> links;
  Rows<double> rows;  // of the last A

  KnownColumns* find(u32 reg) const {
    KnownColumns* known = by_register_[reg];
    return known && known->reg == reg ? known : nullptr;
  }
  KnownColumns& place_of(u32 reg, const u32 (*b)[kLanes]);

 private:
  std::array<KnownColumns*, 256> by_register_ = {};
  std::array<std::unique_ptr<KnownColumns>, 256> few_;
  std::array<KnownColumns, 12> many_;
  u32 next_ = 0;
};

// Whether each column of both halves is as its source.
RDNA_INLINE Block<u32, kHalf> differences(const u32* row, Block<u32, kHalf> source) {
  const auto low = block<u32, kHalf>(row), high = block<u32, kHalf>(row + kHalf);
  return (low ^ permuted(low, source)) | (high ^ permuted(high, source));
}

// Registers of B that are as they were.
RDNA_INLINE bool unchanged(const KnownColumns& known, const u32 (*b)[kLanes]) {
  Block<u32, kHalf> changes = 0u;
  for (int r = 0; r < kDepth / 2; ++r)
    for (int h = 0; h < kLanes; h += kHalf)
      changes |= block<u32, kHalf>(&b[r][h]) ^ block<u32, kHalf>(&known.raw[r][h]);
  return set_lanes(changes) == 0;
}

// Whether columns repeat as they did; that some do not is not looked for.
RDNA_INLINE bool repeats(const KnownColumns& known, const u32 (*registers)[kLanes], int count) {
  Block<u32, kHalf> changes = 0u;
  for (int r = 0; r < count; ++r) changes |= differences(registers[r], known.source);
  return set_lanes(changes) == 0;
}

MatrixMemory& add_matrix_memory(Wave&);

RDNA_INLINE MatrixMemory& matrix_memory(Wave& w) {
  MatrixMemory* memory = w.group->state->matrices.get();
  return memory ? *memory : add_matrix_memory(w);
}

// When a matrix instruction of a loop has read B: nothing has changed B as long as this stays the same.
RDNA_INLINE Reading reading_of(const Wave& w, const Inst& i, const MatrixLink& link) {
  if (link.entries[0] < 0) return {};
  return {&i, &w, w.executed[link.entries[0]] + w.executed[link.entries[1]], w.group->state->waves_begun};
}

// What is known of a matrix instruction's factors before they are looked at.
struct KnownFactors {
  bool a, b;        // A is that of the last one; B is as it was when `find` last gave its columns
  Reading reading;  // of B
};

// A link holds if this wave has executed the matrix instruction before, and no other of its worker has done so since.
RDNA_INLINE KnownFactors known_factors(Wave& w, const Inst& i, const MatrixMemory& memory) {
  ProgramState& state = *w.group->state;
  const MatrixLink& link = memory.links[static_cast<std::size_t>(&i - w.group->insts)];
  const bool linked = link.back && state.last_matrix == &i - link.back && state.last_matrix_wave == &w;
  state.linked_matrices = linked ? state.linked_matrices + 1 : 0;
  state.last_matrix = &i;
  state.last_matrix_wave = &w;
  return {linked && link.same_a, link.same_b && state.linked_matrices >= link.same_b, reading_of(w, i, link)};
}

template <class Format>
RDNA_INLINE const KnownColumns& columns_of(Wave& w, MatrixMemory& memory, u32 reg, u32 signs, const KnownFactors& factors) {
  const u32(*b)[kLanes] = &w.v[reg];
  KnownColumns* found = memory.find(reg);
  if (found && found->format == Format::kNumber && found->signs == signs) {
    if (factors.b || found->reading.is(factors.reading)) return *found;
    if (unchanged(*found, b)) {
      found->reading = factors.reading;
      return *found;
    }
  }
  if (!found || found->count == kHalf || !repeats(*found, b, kDepth / 2)) found = &memory.place_of(reg, b);
  for (int r = 0; r < kDepth / 2; ++r) block<u32, kLanes>(found->raw[r]) = block<u32, kLanes>(b[r]);
  found->signs = signs;
  found->reading = factors.reading;
  found->format = Format::kNumber;
  if (found->count == kHalf) {
    Block<u32, kHalf> changes = 0u;
    for (int r = 0; r < kDepth / 2; ++r) changes |= block<u32, kHalf>(b[r]) ^ block<u32, kHalf>(&b[r][kHalf]);
    found->twice = set_lanes(changes) == 0;
    load_half<Format>(b, signs, 0, found->columns);
    if (!found->twice) load_half<Format>(b, signs, 1, found->columns);
  } else {
    const auto lanes = found->gather;
    load_columns<Format>([=](int r) __attribute__((always_inline)) { return gathered(b[r], lanes); }, signs,
                         found->columns.b[0]);
  }
  return *found;
}

}  // namespace rdna
