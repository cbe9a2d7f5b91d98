// The checks: what the run loop and the memory bodies call while any check is on (`Wave::shadow` is set).
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "core/machine.hpp"

namespace rdna {

enum CheckBit : u32 {
  kCheckWaits = 1,
  kCheckUninitialised = 2,
  kCheckBounds = 4,
  kCheckRaces = 8,
  kCheckCollisions = 16,
  kCheckBarriers = 32,
  kCheckSpin = 64,
  kMeasureModel = 128,  // not a check: the issue model runs along
};

enum class Stall : u8 { dependence, vmcnt, lgkmcnt, vscnt, barrier, kinds };
constexpr int kStalls = static_cast<int>(Stall::kinds);

// Cycles. The Python side fills it from its table of targets.
struct ModelParameters {
  u32 dependence_valu, dependence_trans, dependence_matrix;
  u32 issue_trans, issue_matrix;
  u32 latency_lds, latency_scalar, latency_l0, latency_l2, latency_dram;
  u32 l0_lines;  // 128 bytes each
};

struct WorkgroupCycles {
  u64 critical;  // of the slowest wave, stalls included
  u64 busiest;   // issue cycles of the busiest SIMD
};

struct ModelResult {
  std::vector<WorkgroupCycles> workgroups;  // in the order in which they ended
  u64 issue = 0;
  u64 stalls[kStalls] = {};
};

enum class Access : u8 { load, store, atomic };

// One memory instruction as its body resolved it. Only active lanes' entries are set.
struct LaneAccess {
  Access access;
  u32 lanes;              // mask of the lanes that access memory
  const u64* addresses;   // [32] device addresses, or LDS byte offsets
  u32 bytes;              // per lane
  u16 data_row;           // first VGPR of the data that is stored, or of the result (a plain load or a returning atomic)
  bool high;              // d16_hi
  bool returns;           // the atomic returns its old value
};

struct LaunchShadow;     // per launch: global memory's shadow, findings
struct WorkgroupShadow;  // per resident workgroup: LDS and barrier epochs

LaunchShadow* make_launch_shadow(u32 checks, bool collect, const Program&, const ModelParameters&);
void free_launch_shadow(LaunchShadow*);
std::vector<std::string> take_findings(LaunchShadow*);
const ModelResult& model_result(const LaunchShadow*);

WorkgroupShadow* make_workgroup_shadow(LaunchShadow*, u32 lds_bytes, u32 waves);
void free_workgroup_shadow(WorkgroupShadow*);
// Sets `wave.shadow`; `initial_vgprs` and `initial_sgprs` are the registers that the launch has filled, from 0 on.
void begin_wave(Wave&, WorkgroupShadow*, u32 initial_vgprs, u32 initial_sgprs);
void end_wave(Wave&);  // frees `wave.shadow`

void check_before(Wave&, const Inst&);        // before each instruction's body
void check_barrier_passed(WorkgroupShadow*);  // every wave of the workgroup has arrived: a new epoch
void check_global(Wave&, const Inst&, const LaneAccess&);
void check_zeroed(Wave&, const Inst&, const LaneAccess&);  // lanes outside a buffer: the result is 0, memory is not accessed
std::unique_lock<std::mutex> lock_atomics(Wave&);
void check_lds(Wave&, const Inst&, const LaneAccess&);
// The short way where all lanes are active; `addresses` of the access may be null. False: check_lds has to look.
bool repeats_lds(Wave&, const Inst&, const LaneAccess&, const u32x& addresses);
void check_scratch(Wave&, const Inst&, const LaneAccess&);  // addresses: byte offsets in the lane's scratch
void check_scalar_load(Wave&, const Inst&, u64 address, u32 bytes);
// The text of a trap: message, kernel, workgroup, wave, lane, address, instruction (run/ defines it).
std::string describe_trap(const Wave&, const Inst&, int lane, const std::string& message);
// Records a finding; throws (through trap) unless findings are collected.
void report_finding(Wave&, const Inst&, int lane, const std::string& message);

}  // namespace rdna
