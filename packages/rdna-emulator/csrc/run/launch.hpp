// A launch while it runs: what workers share, what each has of its own, and the workgroups in flight.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "check/check.hpp"
#include "memory/move.hpp"
#include "memory/site.hpp"
#include "run/interrupt.hpp"

namespace rdna {

// From the kernel descriptor and the metadata.
struct Kernel {
  std::string name;
  u32 entry = 0;             // byte offset in the text section
  u32 user_sgprs = 0;        // mask of UserSgpr, in descriptor order
  u32 user_sgpr_count = 0;
  u32 workgroup_ids = 0;     // bits 0 to 2: x, y, z are wanted; bit 3: workgroup info
  u32 workitem_ids = 0;      // 0: x, 1: x and y, 2: all
  u32 mode = 0;
  u32 vgprs = 0;
  u32 lds_bytes = 0;         // static
  u32 private_bytes = 0;     // scratch of a lane
};

enum UserSgpr : u32 {
  kPrivateSegmentBuffer = 1,
  kDispatchPointer = 2,
  kQueuePointer = 4,
  kKernargPointer = 8,
  kDispatchId = 16,
  kFlatScratchInit = 32,
  kPrivateSegmentSize = 64,
};

// Whether every worker waits for memory that only another one could change: see spin.cpp.
struct Quiet {
  std::mutex mutex;
  u64 epoch = 0;      // grows whenever a worker begins or ends, or one that waited goes on
  u32 live = 0;       // workers that run workgroups
  u32 waiting = 0;    // of these, the ones whose waves all spin
  u32 confirmed = 0;  // of these, the ones that have looked again since the epoch began
};

struct Dim3 {
  u32 x = 1, y = 1, z = 1;
  u64 count() const { return u64{x} * y * z; }
};

struct Launch {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  u32 lds_bytes = 0;          // static and dynamic
  u64 kernarg = 0, dispatch_packet = 0, queue = 0;
  AddressSpace space;
  LaunchShadow* shadow = nullptr;
  std::atomic<u64> next_workgroup{0};
  std::atomic<u64> resident{0};  // workgroups in flight
  std::atomic<bool> failed{false};
  InterruptWatch interrupts;
  Quiet quiet;
  std::mutex mutex;           // of what follows
  u64 failed_workgroup = ~u64{0};
  std::exception_ptr failure; // of the first workgroup, in launch order, that failed

  u32 waves_per_workgroup() const { return static_cast<u32>((block.count() + kLanes - 1) / kLanes); }
};

// Lines that a worker has touched lately, all in one word of the bits that the workers share and set together.
struct PendingLines {
  u64* word = nullptr;
  u64 bits = 0;
  TouchedWord place;
};

struct Worker {
  u32 number = 0;
  ProgramState* state = nullptr;
  std::vector<TouchedWord> touched;
  PendingLines pending;
  u64 changes = 0;        // memory writes so far, for the detection of spins
  bool watching = false;  // a wave's loop is compared: writes count only where they change something
  u64 clock = 0;          // what reads of a clock see: it only grows
};

// A wave's own state at a branch backwards, to be compared when it comes there again.
struct SpinProbe {
  enum class State : u8 { idle, watching, stuck } state = State::idle;
  u32 window = 64;   // branches backwards to watch
  u32 left = 0;
  u32 skip = 0;        // turns before the next window
  u32 stride = 1;      // branches from one note to the next
  u32 until_next = 1;
  u64 changes = 0;   // of the worker when the registers were noted
  const Inst* edge = nullptr;
  std::vector<u8> state_of_wave;
};

struct Workgroup {
  const Inst* insts = nullptr;
  ProgramState* state = nullptr;
  Worker* worker = nullptr;
  Launch* launch = nullptr;
  u8* lds = nullptr;
  u32 lds_bytes = 0;
  u8* scratch = nullptr;     // of the first wave; a lane's bytes are contiguous
  u32 scratch_bytes = 0;     // per lane
  u32 scratch_stride = 0;    // from lane to lane
  u64 number = 0;            // in launch order
  Dim3 id{0, 0, 0};
  WorkgroupShadow* shadow = nullptr;
  std::vector<Wave*> waves;
  std::vector<SpinProbe> probes;
  u32 ended = 0, arrived = 0;  // waves; arrived at the barrier
};

struct TrapError {
  Fault fault;
  std::string message;
};

RDNA_INLINE GlobalSite& global_site(Wave& w, const Inst& i) {
  Workgroup& group = *w.group;
  const auto index = static_cast<std::size_t>(&i - group.insts);
  GlobalSite* site = group.state->global[index].get();
  return site ? *site : group.state->global_site(index);
}

RDNA_INLINE LdsSite& lds_site(Wave& w, const Inst& i) {
  Workgroup& group = *w.group;
  const auto index = static_cast<std::size_t>(&i - group.insts);
  LdsSite* site = group.state->lds[index].get();
  return site ? *site : group.state->lds_site(index);
}

// To be called before a store: memory is about to change.
template <StoreKind kKind>
RDNA_INLINE void note_store(Wave& w, u32 row, u32 active, const u8* base, const i32* delta) {
  Worker& worker = *w.group->worker;
  worker.changes += !worker.watching || store_differs<kKind>(w, row, active, base, delta);
}

// A taken branch backwards whose wave has used up its turn (run/spin.cpp).
void end_turn(Wave&, const Inst&);

}  // namespace rdna
