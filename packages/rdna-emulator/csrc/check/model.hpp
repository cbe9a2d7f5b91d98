// The in-order issue model: estimates, from the order of instructions alone, where a wave's cycles go. Its parameters
// are assumed or published figures, never measured ones; the Python side names each.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "check/check.hpp"
#include "check/plan.hpp"

namespace rdna {

struct LaunchModel {
  ModelParameters parameters;
  std::mutex mutex;  // of what follows
  std::unordered_set<u64> lines;  // touched by anyone in this launch
  ModelResult result;
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

// Sets when the operation that was started last returns: a global access by the slowest of its lines.
void model_global(WaveModel&, LaunchModel&, WorkgroupModel&, const LaneAccess&, bool scalar);
void model_lds(WaveModel&, const LaunchModel&, const LaneAccess&);
void model_barrier(std::vector<WaveModel*>&);
void model_wave_end(const WaveModel&, u32 index, LaunchModel&, WorkgroupModel&);

}  // namespace rdna
