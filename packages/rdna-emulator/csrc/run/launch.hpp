// A launch while it runs: what workers share, what each has of its own, and the workgroups in flight.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "check/check.hpp"
#include "memory/site.hpp"

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
  std::atomic<bool> failed{false};
  u64 resident_limit = 1;     // workgroups in flight that spinning waves may add up to
  // Spin detection across workers: how many run waves that may still change memory.
  std::atomic<u32> progressing{0};
  std::atomic<u64> awakenings{0};
  std::mutex mutex;           // of what follows
  u64 failed_workgroup = ~u64{0};
  std::exception_ptr failure; // of the first workgroup, in launch order, that failed
};

struct Worker {
  u32 number = 0;
  ProgramState* state = nullptr;
  std::vector<TouchedWord> touched;
  u64 changes = 0;  // memory writes, for the detection of spins
  u64 clock = 0;    // what reads of a clock see: it only grows
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
  u32 wave_count = 0;
  Wave** waves = nullptr;
  WorkgroupShadow* shadow = nullptr;
};

struct TrapError {
  Fault fault;
  std::string message;
  u32 address;      // of the instruction, from the start of the text section
  int lane;         // -1: none
  u32 wave;
  Dim3 workgroup;
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

// A taken branch backwards whose wave has used up its turn (run/spin.cpp).
void end_turn(Wave&, const Inst&);

}  // namespace rdna
