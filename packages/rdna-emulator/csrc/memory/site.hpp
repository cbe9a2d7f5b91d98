// What a worker remembers of each memory instruction: how its lanes' addresses lay the last time. Most instructions
// repeat their pattern, so that bounds, segments, lines and bank conflicts cost one comparison of two rows.
#pragma once
#include <memory>
#include <vector>

#include "memory/move.hpp"
#include "memory/spans.hpp"

namespace rdna {

struct alignas(128) Pattern {
  i32 delta[kLanes] = {};  // address of each active lane, less the first active lane's
  u32 mask[kLanes] = {};   // all ones in active lanes
  u32 active = 0;
  u32 first = 0;           // first active lane
  i64 low = 0, high = 0;   // smallest and largest delta
  LaneLayout layout = LaneLayout::apart;
  u64 executions = 0;      // with this pattern, not yet added to the traffic

  void set(u32 lanes, const i32* deltas, u32 bytes);
  RDNA_INLINE bool fits(u32 lanes, u32x differing) const {
    if (lanes != active) return false;
    if (lanes == ~0u) return __builtin_reduce_or(differing) == 0;  // the mask need not come into the host's cache
    return __builtin_reduce_or(differing & *reinterpret_cast<const u32x*>(mask)) == 0;
  }
  RDNA_INLINE u32x deltas() const { return *reinterpret_cast<const u32x*>(delta); }
};

struct LineRun {
  i32 line;   // of the first, counted from the line of the first active lane
  u32 count;  // at most 64
};

struct GlobalSite : Pattern {
  u32 phase = ~0u;  // byte of its 128-byte line at which the first active lane begins
  u32 segments[3] = {};
  u32 bytes = 0;    // per lane
  // Lines: where they lie within 64, bit k of `line_bits` for the k-th after `lowest_line`; else 0, and in `runs`.
  u64 line_bits = 0;
  i64 lowest_line = 0;  // counted from the line of the first active lane
  u32 run_count = 0;
  LineRun runs[2 * kLanes];
  // The span and piece of the last execution: the piece holds every lane if the first lane's address - begin <= room.
  u64 begin = ~u64{0}, room = 0;
  u64 origin = 0;
  u64* lines = nullptr;
  u32 span = 0;
  u32 piece = 0;

  void forget_span() { begin = ~u64{0}, room = 0; }
  void count_segments(u32 first_byte);
};

struct LdsSite : Pattern {
  u32 phase = 0;  // byte of its dword at which the first active lane begins
  u32 alignment = 0;  // bits set in any delta
  u32 cycles = 0, minimum = 0;
};

struct Traffic {
  u64 segments[3] = {};  // of 32, 64 and 128 bytes
  u64 lds_cycles = 0, lds_minimum = 0;
};

class MatrixMemory;
struct Inst;
struct Wave;

// The state of one worker for one program.
struct ProgramState {
  explicit ProgramState(std::size_t insts) : executed(insts), global(insts), lds(insts) {}
  GlobalSite& global_site(std::size_t inst) {
    if (!global[inst]) {
      global[inst] = std::make_unique<GlobalSite>();
      used_global.push_back(global[inst].get());
    }
    return *global[inst];
  }
  LdsSite& lds_site(std::size_t inst) {
    if (!lds[inst]) {
      lds[inst] = std::make_unique<LdsSite>();
      used_lds.push_back(lds[inst].get());
    }
    return *lds[inst];
  }
  void add_traffic();   // of all sites to `requested` and `traffic`
  void forget_launch();

  std::vector<u64> executed;
  std::vector<std::unique_ptr<GlobalSite>> global;
  std::vector<std::unique_ptr<LdsSite>> lds;
  std::vector<GlobalSite*> used_global;
  std::vector<LdsSite*> used_lds;
  std::vector<u64> requested;  // bytes, of each piece of the launch's memory
  Traffic traffic;
  std::shared_ptr<MatrixMemory> matrices;
  const Wave* last_matrix_wave = nullptr;  // whose last matrix instruction was ..
  const Inst* last_matrix = nullptr;       // .. and left its A in `matrices`
  u64 linked_matrices = 0;                 // executed before it, each after the one that it is linked to
  u64 waves_begun = 0;
};

void add_executions(GlobalSite&, ProgramState&);
void add_executions(LdsSite&, Traffic&);

}  // namespace rdna
