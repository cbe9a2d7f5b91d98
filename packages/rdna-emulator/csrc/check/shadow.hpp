// The state behind the checks. Registers and LDS carry byte-wise taint ("undefined"); memory accesses carry stamps.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "check/check.hpp"
#include "check/model.hpp"

namespace rdna {

// Which wave accessed memory, when by that wave's own clock, and which bytes of the cell.
struct Stamp {
  u64 wave : 24 = 0;  // launch-wide number, from 1; 0: nobody
  u64 clock : 23 = 0;
  u64 atomic : 1 = 0;
  u64 bytes : 16 = 0;
};

// What a wave knows of the others: their accesses up to that clock happened before.
class VectorClock {
 public:
  u32 of(u32 wave) const;
  void raise(u32 wave, u32 clock);
  void join(const VectorClock& other);
  void clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<u32, u32>> entries_;  // sorted by wave
};

struct GlobalCell {
  Stamp write;
  Stamp reads[2];
};

// Memory is followed in granules of 16 bytes, what most instructions touch whole, and by dwords where a part of one was
// touched (global memory: written; readers of parts are told apart by their bytes): `split` says which.
constexpr u32 kGranuleBytes = 16;
constexpr u64 kPageBytes = 4096;
constexpr u32 kPageGranules = kPageBytes / kGranuleBytes;

// The dwords of a page that one wave has read at one time of its clock.
struct PageReads {
  u32 wave = 0;
  u32 clock = 0;
  u64 dwords[kPageBytes / 4 / 64] = {};
};

// A page that is only read, and by few waves, has these reads noted; its cells come into use with the first other access.
struct GlobalPage {
  static constexpr std::size_t kMostReads = 64;
  std::vector<PageReads> reads;
  bool in_cells = false;
  GlobalCell granules[kPageGranules];
  u64 used[kPageGranules / 64] = {};  // the others' cells are left over from an earlier launch
  u64 split[kPageGranules / 64] = {};
  std::unique_ptr<GlobalCell[]> dwords;  // of the split granules
};

// Pages go from launch to launch: fresh memory would cost more than all else that the checks do.
std::unique_ptr<GlobalPage> take_page();
void give_back(std::unique_ptr<GlobalPage>);

constexpr u32 kShards = 64;

// Held for some tens of nanoseconds.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire))
      while (flag_.test(std::memory_order_relaxed)) std::this_thread::yield();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

struct GlobalShard {
  SpinLock lock;
  std::unordered_map<u64, std::unique_ptr<GlobalPage>> pages;  // by address / kPageBytes
};

struct LaunchShadow {
  u32 checks = 0;
  bool collect = false;
  LaunchModel model;
  const CheckPlan* plan = nullptr;
  const Inst* insts = nullptr;
  std::atomic<u32> next_wave{1};
  std::array<GlobalShard, kShards> global;
  std::mutex atomics;  // held from an atomic's report to its effect
  std::mutex mutex;    // of what follows
  std::unordered_map<u64, VectorClock> published;  // by address of the atomic
  std::unordered_map<u32, VectorClock> known_by;   // of every wave at its last synchronisation
  std::vector<std::string> findings;
  std::unordered_set<std::string> seen;  // one finding per instruction and kind
};

struct LdsCell {
  u32 write_epoch = 0;  // epochs count from 1
  u32 read_epoch = 0;
  u32 readers = 0;      // mask of waves in read_epoch
  u8 writer = 0;
  u8 write_bytes = 0;   // a dword's; a granule is touched whole
  u8 read_bytes = 0;
  bool atomic = false;
};

struct WorkgroupShadow {
  LaunchShadow* launch = nullptr;
  u32 epoch = 1;
  std::vector<LdsCell> lds_granules, lds_dwords;
  std::vector<u8> lds_split;         // granules that are followed by dwords
  std::vector<u32> lds_owners;       // epoch and wave of the last store to each granule, if it was whole and defined; else 0
  std::vector<u16> lds_undefined;    // bytes of each granule that nothing defined has been stored to
  u64 lds_version = 1;               // counts the changes to what is known of LDS
  std::vector<Wave*> waves;          // null once ended
  std::vector<u32> barriers;         // passed by each wave
  WorkgroupModel model;
};

enum CounterBit : u8 { kVmcnt = 1, kLgkmcnt = 2, kVscnt = 4 };

// One memory operation that the wave has not waited for.
struct alignas(64) Outstanding {
  u64 vgprs[4] = {};          // destination registers
  u64 sgprs[2] = {};
  u8 counters = 0;
  bool out_of_order = false;  // SMEM returns in any order
};

// What such an operation has touched, if it matters to races.
struct Touched {
  Access access;
  bool in_lds;
  u8 parts;                   // 2addr forms have two
  u32 bytes;
  u32 lanes[2];
  u16 lds[2][kLanes];
  u64 global[kLanes];
};

constexpr u32 kCounterLimit = 63;  // the counters are 6 bits wide: the oldest operation has ended once 63 others follow
constexpr u32 kOutstanding = 160;

class Queue {
 public:
  u32 size() const { return size_; }
  Outstanding& at(u32 i) { return ring_[(head_ + i) % kOutstanding]; }
  Touched& touched(u32 i) { return touched_[(head_ + i) % kOutstanding]; }
  Outstanding& push(u8 counters);
  void pop() { head_ = --size_ ? (head_ + 1) % kOutstanding : 0, ++ended_; }
  // No operation before it is outstanding by the counter.
  u32 oldest(int counter) const { return oldest_[counter] > ended_ ? static_cast<u32>(oldest_[counter] - ended_) : 0; }
  void set_oldest(int counter, u32 k) { oldest_[counter] = ended_ + k; }
  void remove_ended();
  void trim();

 private:
  std::array<Outstanding, kOutstanding> ring_;
  std::array<Touched, kOutstanding> touched_;
  u32 head_ = 0, size_ = 0;
  u64 ended_ = 0;         // operations that have left
  u64 oldest_[3] = {};    // counted from the first operation of the wave
};

// An LDS instruction that has changed nothing of what is known of LDS will not do so at the same addresses either, until
// something else does.
struct alignas(64) LdsMemo {
  u16x addresses;
  u64 version = 0;  // the workgroup's when it was so
};

struct WaveShadow {
  WorkgroupShadow* group = nullptr;
  LaunchShadow* launch = nullptr;
  const CheckPlan* plan = nullptr;
  u32 checks = 0;
  u32 id = 0;                          // launch-wide
  u32 index = 0;                       // in the workgroup
  u32 clock = 1;
  VectorClock known;
  VectorClock acquired;                // read from atomics, not yet behind an invalidate
  bool gl1_invalidated = false;
  u32 vector_taint[kSourceRows][4] = {};  // [register][byte]: mask of lanes
  u32 scalar_taint[256] = {};             // mask of bits
  struct {
    u64 number = ~0ull;
    GlobalPage* page = nullptr;
    u32 clock = 0;                        // of what follows
    u32 reads = 0;                        // this wave's entry in the page's reads
  } recent_pages[8];                      // by page number
  std::vector<LdsMemo> lds_memos;         // InstPlan::memo counts them
  RegisterSet tainted;                    // registers with any taint
  std::vector<u32> scratch_undefined;     // [byte of a lane's scratch]: mask of lanes; bytes past its end are undefined
  RegisterSet pending;                    // that outstanding loads write; and what the wave looks at
  bool shared_destinations = false;       // two outstanding loads have had a register in common
  Queue queue;
  u32 unordered = 0;                      // outstanding operations that return in any order
  u32 outstanding[3] = {};                // operations of each counter, by the position of its bit
  const InstPlan* last_wmma = nullptr;    // that ran just before
  std::unique_ptr<WaveModel> model;    // null unless measured
};

RDNA_INLINE bool common(const u64 (&a)[4], const u64 (&b)[4]) {
  return ((a[0] & b[0]) | (a[1] & b[1]) | (a[2] & b[2]) | (a[3] & b[3])) != 0;
}
RDNA_INLINE bool common(const u64 (&a)[2], const u64 (&b)[2]) { return ((a[0] & b[0]) | (a[1] & b[1])) != 0; }

// Waits (waits.cpp).
void apply_wait(WaveShadow&, const WaitLimit&);
void report_pending(Wave&, const Inst&, const InstPlan&);  // which registers: some are
void start_operation(WaveShadow&, const InstPlan&);
void note_global(WaveShadow&, const LaneAccess&);
void note_lds(WaveShadow&, const LaneAccess&, const u16x& addresses);

// Taint (taint.cpp).
void propagate(Wave&, const Inst&, const InstPlan&);
void check_address_taint(Wave&, const Inst&, const Operand&, u32 lanes);
void update_tainted(WaveShadow&, u32 vgpr);
RDNA_INLINE bool is_tainted(const WaveShadow& shadow, u32 vgpr) { return shadow.tainted.v[vgpr / 64] >> (vgpr & 63) & 1; }
void define_loaded(WaveShadow&, const Inst&, const LaneAccess&);

// Races (clocks.cpp, global.cpp, lds.cpp).
void publish(Wave&, u64 address);
bool lanes_ascend(const LaneAccess&);  // none touches what another does
void check_collisions(Wave&, const Inst&, const LaneAccess&);
void after_invalidate(WaveShadow&, bool gl1);
void restamp_outstanding(WaveShadow&, u32 old_clock, u32 old_epoch);

}  // namespace rdna
