#include "memory/site.hpp"

#include <algorithm>
#include <bit>

namespace rdna {

void Pattern::set(u32 lanes, const i32* deltas, u32 bytes) {
  active = lanes;
  first = static_cast<u32>(std::countr_zero(lanes));
  low = high = 0;
  bool in_one = lanes == ~0u, in_eights = in_one, in_twins = in_one;
  for (int l = 0; l < kLanes; ++l) {
    const bool on = lanes >> l & 1;
    mask[l] = on ? ~0u : 0;
    delta[l] = on ? deltas[l] : 0;
    low = std::min<i64>(low, delta[l]);
    high = std::max<i64>(high, delta[l]);
    in_one &= delta[l] == l * static_cast<i32>(bytes);
    in_eights &= delta[l] - delta[l & ~7] == (l & 7) * static_cast<i32>(bytes);
    in_twins &= delta[l] == delta[l & ~1];
  }
  layout = in_one ? LaneLayout::in_one : in_eights ? LaneLayout::in_eights : in_twins ? LaneLayout::in_twins : LaneLayout::apart;
}

// Distinct 32-byte segments, in ascending order, make distinct 64- and 128-byte ones by halving.
void GlobalSite::count_segments(u32 first_byte) {
  phase = first_byte;
  i32 touched[2 * kLanes];
  u32 count = 0;
  bool ascending = true;
  i32 last = 0;
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const i64 begin = i64{first_byte} + delta[l];
    const i32 from = static_cast<i32>(begin >> 5), to = static_cast<i32>((begin + bytes - 1) >> 5);
    for (i32 segment = from; segment <= to; ++segment) {
      if (count && segment == last) continue;
      ascending &= count == 0 || segment > last;
      touched[count++] = last = segment;
    }
  }
  if (!ascending) {
    std::sort(touched, touched + count);
    count = static_cast<u32>(std::unique(touched, touched + count) - touched);
  }
  segments[0] = count;
  segments[1] = segments[2] = 0;
  run_count = 0;
  for (u32 k = 0; k < count; ++k) {
    if (k == 0 || touched[k] >> 1 != touched[k - 1] >> 1) ++segments[1];
    const i32 line = touched[k] >> 2;
    if (k && line == touched[k - 1] >> 2) continue;
    ++segments[2];
    if (run_count && runs[run_count - 1].line + static_cast<i32>(runs[run_count - 1].count) == line) {
      ++runs[run_count - 1].count;
    } else {
      runs[run_count++] = {line, 1};
    }
  }
  lowest_line = runs[0].line;
  line_bits = 0;
  const LineRun& last_run = runs[run_count - 1];
  if (last_run.line + static_cast<i64>(last_run.count) - lowest_line > 64) return;
  for (u32 k = 0; k < run_count; ++k) line_bits |= ~u64{0} >> (64 - runs[k].count) << (runs[k].line - lowest_line);
}

void add_executions(GlobalSite& site, ProgramState& state) {
  state.requested[site.piece] += site.executions * static_cast<u64>(std::popcount(site.active)) * site.bytes;
  for (int k = 0; k < 3; ++k) state.traffic.segments[k] += site.executions * site.segments[k];
  site.executions = 0;
}

void add_executions(LdsSite& site, Traffic& traffic) {
  traffic.lds_cycles += site.executions * site.cycles;
  traffic.lds_minimum += site.executions * site.minimum;
  site.executions = 0;
}

void ProgramState::add_traffic() {
  for (GlobalSite* site : used_global) add_executions(*site, *this);
  for (LdsSite* site : used_lds) add_executions(*site, traffic);
}

void ProgramState::forget_launch() {
  last_matrix = nullptr;
  for (GlobalSite* site : used_global) {
    site->forget_span();
    site->piece = 0;  // every launch has one: its arguments
  }
}

}  // namespace rdna
