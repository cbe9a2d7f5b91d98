// The in-order issue model: estimates, from the order of instructions alone, where a wave's cycles go. Its parameters
// are assumed or published figures, never measured ones; the Python side names each.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "check/plan.hpp"

namespace rdna {

// Cycles; filled by the Python side from one table per target.
struct ModelParameters {
  u32 dependence_valu = 0, dependence_trans = 0, dependence_matrix = 0;
  u32 issue_trans = 0, issue_matrix = 0;
  u32 latency_lds = 0, latency_l0 = 0, latency_l2 = 0, latency_dram = 0, latency_scalar = 0;
  u32 l0_lines = 0;  // 128-byte lines
};

enum class Stall : u8 { dependence, vmcnt, lgkmcnt, vscnt, barrier, kinds };
constexpr int kStalls = static_cast<int>(Stall::kinds);

struct WorkgroupCycles {
  u64 critical = 0;  // of the slowest wave, stalls included
  u64 busiest = 0;   // issue cycles of the busiest SIMD
};

struct LaunchModel {
  ModelParameters parameters;
  std::mutex mutex;  // of what follows
  std::unordered_set<u64> lines;  // touched by anyone in this launch
  std::vector<WorkgroupCycles> workgroups;
  u64 issue = 0;
  u64 stalls[kStalls] = {};
};

struct WorkgroupModel {
  std::vector<u64> l0;  // direct-mapped line tags
  std::array<u64, 4> simd_issue = {};
  u64 critical = 0;
};

struct WaveModel {
  u64 time = 0, issue = 0;
  u64 stalls[kStalls] = {};
  u64 ready_v[256] = {}, ready_s[256] = {};
  struct Flight {
    u8 counters;
    u64 done;
  };
  std::vector<Flight> flights;

  void wait_until(u64 when, Stall why);
  void issue_instruction(const InstPlan&, const ModelParameters&);
  void wait_for(u8 counter, u32 limit, Stall why);
};

// Latency of one global access: the slowest of its lines.
u32 global_latency(LaunchModel&, WorkgroupModel&, const LaneAccess&);

}  // namespace rdna
