// Where the run loop enters the checks, and how findings are kept.
#include <algorithm>

#include "check/shadow.hpp"

namespace rdna {

LaunchShadow* make_launch_shadow(u32 checks, bool collect, const Program& program, const ModelParameters& parameters) {
  static std::mutex plan_mutex;
  auto* launch = new LaunchShadow;
  launch->checks = checks;
  launch->collect = collect;
  {
    const std::lock_guard lock(plan_mutex);
    if (!program.check_plan) program.check_plan = make_check_plan(program);
  }
  launch->plan = program.check_plan.get();
  launch->insts = program.insts.data();
  launch->model.parameters = parameters;
  return launch;
}

void free_launch_shadow(LaunchShadow* launch) {
  for (GlobalShard& shard : launch->global)
    for (auto& [number, page] : shard.pages) give_back(std::move(page));
  delete launch;
}

std::vector<std::string> take_findings(LaunchShadow* launch) {
  const std::lock_guard lock(launch->mutex);
  return std::move(launch->findings);
}

WorkgroupShadow* make_workgroup_shadow(LaunchShadow* launch, u32 lds_bytes, u32 waves) {
  auto* group = new WorkgroupShadow;
  group->launch = launch;
  const u32 granules = (lds_bytes + kGranuleBytes - 1) / kGranuleBytes;
  if (launch->checks & kCheckRaces) {
    group->lds_granules.resize(granules);
    group->lds_split.resize(granules);
    group->lds_dwords.resize(4 * granules);
  }
  group->lds_owners.resize(granules);
  if (launch->checks & kCheckUninitialised) group->lds_undefined.resize(granules, 0xffff);
  group->waves.resize(waves, nullptr);
  group->barriers.resize(waves, 0);
  if (launch->checks & kMeasureModel) group->model.l0.assign(std::max(launch->model.parameters.l0_lines, 1u), ~0ull);
  return group;
}

void free_workgroup_shadow(WorkgroupShadow* group) {
  LaunchShadow& launch = *group->launch;
  if (launch.checks & kMeasureModel) {
    const std::lock_guard lock(launch.model.mutex);
    const auto& issue = group->model.simd_issue;
    launch.model.result.workgroups.push_back({group->model.critical, *std::max_element(issue.begin(), issue.end())});
  }
  delete group;
}

const ModelResult& model_result(const LaunchShadow* launch) { return launch->model.result; }

void begin_wave(Wave& w, WorkgroupShadow* group, u32 initial_vgprs, u32 initial_sgprs) {
  auto* shadow = new WaveShadow;
  shadow->group = group;
  shadow->launch = group->launch;
  shadow->plan = group->launch->plan;
  shadow->checks = group->launch->checks;
  shadow->id = group->launch->next_wave++;
  shadow->index = w.index;
  if (shadow->checks & kCheckUninitialised) {
    shadow->tainted.scc = 1;
    for (u32 reg = initial_vgprs; reg < kSourceRows; ++reg) {
      for (u32& byte : shadow->vector_taint[reg]) byte = ~0u;
      shadow->tainted.v[reg / 64] |= 1ull << (reg & 63);
    }
    for (u32 reg = initial_sgprs; reg < kNull; ++reg) shadow->scalar_taint[reg] = ~0u;
    shadow->scalar_taint[kM0] = ~0u;
    for (u32 reg = 0; reg < 128; ++reg)
      if (shadow->scalar_taint[reg]) shadow->tainted.s[reg / 64] |= 1ull << (reg & 63);
  }
  shadow->pending.look = kLookAlways;
  if (shadow->checks & kMeasureModel) shadow->model = std::make_unique<WaveModel>(), shadow->pending.look |= kLookIfMeasured;
  shadow->lds_memos.resize(shadow->plan->memos);
  group->waves[w.index] = &w;
  w.shadow = shadow;
}

void end_wave(Wave& w) {
  WaveShadow* shadow = w.shadow;
  if (shadow->model) model_wave_end(*shadow->model, w.index, shadow->launch->model, shadow->group->model);
  {
    const std::lock_guard lock(shadow->launch->mutex);
    shadow->launch->known_by[shadow->id] = std::move(shadow->known);
  }
  shadow->group->waves[w.index] = nullptr;
  w.shadow = nullptr;
  delete shadow;
}

namespace {

// Two WMMAs, one after the other: the second must not read as A or B what the first writes.
void check_wmma_hazard(Wave& w, const Inst& i, const InstPlan& plan) {
  WaveShadow& shadow = *w.shadow;
  if (plan.matrix && shadow.last_wmma && common(plan.matrix_inputs, shadow.last_wmma->writes_v))
    report_finding(w, i, -1, "missing v_nop: reads as A or B what the WMMA just before it writes");
  if (!plan.vector) return;
  shadow.last_wmma = plan.matrix ? &plan : nullptr;
  shadow.pending.look = (shadow.pending.look & ~u64{kLookAfterWmma}) | (plan.matrix ? kLookAfterWmma : 0);
}

}  // namespace

void check_before(Wave& w, const Inst& i) {
  WaveShadow& shadow = *w.shadow;
  const auto index = static_cast<std::size_t>(&i - shadow.launch->insts);
  const u32 words = common_words(shadow.plan->touched[index], shadow.tainted, shadow.pending);
  if (!words) [[likely]] return;
  const InstPlan& plan = shadow.plan->insts[index];
  if (plan.wait.any() && (shadow.checks & (kCheckWaits | kCheckRaces))) apply_wait(shadow, plan.wait);
  if (shadow.checks & kCheckWaits) {
    if ((words & kRegisterWords) && (common(plan.waits_v, shadow.pending.v) || common(plan.waits_s, shadow.pending.s)))
      [[unlikely]] report_pending(w, i, plan);
    check_wmma_hazard(w, i, plan);
  }
  if ((words & kRegisterWords) && (shadow.checks & kCheckUninitialised)) propagate(w, i, plan);
  if (plan.counters && (shadow.checks & (kCheckWaits | kCheckRaces))) start_operation(shadow, plan);
  if (shadow.model) shadow.model->issue_instruction(plan, shadow.launch->model.parameters);
  if (plan.invalidate && (shadow.checks & kCheckRaces)) after_invalidate(shadow, plan.invalidate == 1);
}

std::unique_lock<std::mutex> lock_atomics(Wave& w) { return std::unique_lock(w.shadow->launch->atomics); }

void check_scalar_load(Wave& w, const Inst& i, u64 address, u32 bytes) {
  u64 addresses[kLanes];
  addresses[0] = address;
  if (WaveShadow& shadow = *w.shadow; shadow.model)
    model_global(*shadow.model, shadow.launch->model, shadow.group->model, {Access::load, 1u, addresses, bytes, 0, false, false}, true);
  if (!(w.shadow->checks & kCheckRaces)) return;
  check_global(w, i, {Access::load, 1u, addresses, bytes, 0, false, false});
}

void report_finding(Wave& w, const Inst& i, int lane, const std::string& message) {
  LaunchShadow& launch = *w.shadow->launch;
  if (!launch.collect) trap(w, i, Fault::check, lane, message);
  const std::string key = std::to_string(i.info->address) + message.substr(0, message.find(':'));
  {
    const std::lock_guard lock(launch.mutex);
    if (!launch.seen.insert(key).second) return;
  }
  const std::string text = describe_trap(w, i, lane, message);
  const std::lock_guard lock(launch.mutex);
  launch.findings.push_back(text);
}

}  // namespace rdna
