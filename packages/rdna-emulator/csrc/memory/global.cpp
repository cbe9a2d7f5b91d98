#include "memory/global.hpp"

#include <algorithm>

namespace rdna {

alignas(128) const i32 kNoDelta[kLanes] = {};

void mark_pending(Worker& worker) {
  PendingLines& pending = worker.pending;
  if (!pending.word) return;
  if (!__atomic_fetch_or(pending.word, pending.bits, __ATOMIC_RELAXED)) worker.touched.push_back(pending.place);
  pending.word = nullptr;
}

void mark_lines(Workgroup& group, u64* lines, u32 span, u64 first_line, u64 bits) {
  const auto mark = [&](u64 word, u64 wanted) {
    if (!(wanted & ~__atomic_load_n(lines + word, __ATOMIC_RELAXED))) return;
    PendingLines& pending = group.worker->pending;
    if (pending.word != lines + word) {
      mark_pending(*group.worker);
      pending = {lines + word, 0, {span, word}};
    }
    pending.bits |= wanted;
  };
  const u64 shift = first_line & 63;
  mark(first_line >> 6, bits << shift);
  if (shift) mark((first_line >> 6) + 1, bits >> (64 - shift));
}

void count_runs(Workgroup& group, const GlobalSite& site, u64 first_line) {
  for (u32 k = 0; k < site.run_count; ++k) {
    const u64 line = first_line + static_cast<u64>(i64{site.runs[k].line});
    mark_lines(group, site.lines, site.span, line, ~u64{0} >> (64 - site.runs[k].count));
  }
}

namespace {

[[noreturn]] void fault(Wave& w, const Inst& i, const LaneAddresses& at, u32 active, u32 bytes, bool write) {
  const AddressSpace& space = w.group->launch->space;
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const u64 address = at.of(l);
    const Span* span = space.find(address);
    if (!span || (write && !span->writable)) trap(w, i, Fault::memory, l, space.describe(address, bytes, write));
    if (address + bytes <= span->end) continue;
    const std::string begins = std::to_string(span->end - address) + " bytes before that)";
    trap(w, i, Fault::memory, l, space.describe(span->end, bytes, write) + " (the access begins " + begins);
  }
  const int first = std::countr_zero(active);
  trap(w, i, Fault::memory, first, space.describe(at.of(first), bytes, write));
}

void use_span(GlobalSite& site, const AddressSpace& space, const Span& span, u32 number) {
  const Piece& piece = space.pieces()[number];
  site.begin = piece.begin - static_cast<u64>(site.low);
  site.room = piece.end - piece.begin - static_cast<u64>(site.high - site.low) - site.bytes;
  site.origin = span.origin;
  site.lines = span.lines;
  site.span = space.number(span);
  site.piece = number;
}

void request(std::vector<u64>& requested, const AddressSpace& space, const Span& span, u64 address, u32 bytes) {
  const u64 end = address + bytes;
  for (u32 k = space.piece_of(span, address); address < end; ++k) {
    const u64 next = std::min(end, space.pieces()[k].end);
    requested[k] += next - address;
    address = next;
  }
}

// Lanes in several pieces, or too far apart for 32-bit distances: each is a launch of one lane to the counters.
Located locate_each(Wave& w, const Inst& i, GlobalSite& site, u32 active, const LaneAddresses& at, u32 bytes, bool write,
                    u64* addresses) {
  const AddressSpace& space = w.group->launch->space;
  ProgramState& state = *w.group->state;
  u64 segments[2 * kLanes];  // 32-byte segments, with the span's number in the top bits
  u32 count = 0;
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const u64 address = addresses[l] = at.of(l);
    const Span* span = space.find(address);
    if (!span || address + bytes > span->end || (write && !span->writable)) fault(w, i, at, active, bytes, write);
    const u64 from = (address - span->origin) >> 5, to = (address - span->origin + bytes - 1) >> 5;
    for (u64 segment = from; segment <= to; ++segment) segments[count++] = segment | u64{space.number(*span)} << 48;
    request(state.requested, space, *span, address, bytes);
    if (!span->lines) continue;
    const u64 bits = ~u64{0} >> (64 - ((to >> 2) - (from >> 2) + 1));
    mark_lines(*w.group, span->lines, space.number(*span), from >> 2, bits);
  }
  std::sort(segments, segments + count);
  for (int k = 0; k < 3; ++k) {
    for (u32 n = 0; n < count; ++n) state.traffic.segments[k] += n == 0 || segments[n] >> k != segments[n - 1] >> k;
  }
  add_executions(site, state);
  site.active = 0;  // no pattern: the next execution comes here again
  return {};
}

}  // namespace

Located locate_slowly(Wave& w, const Inst& i, GlobalSite& site, u32 active, const LaneAddresses& at, u32 bytes, bool write,
                      u64* addresses) {
  const AddressSpace& space = w.group->launch->space;
  const u32 first = static_cast<u32>(std::countr_zero(active));
  const u64 address = at.of(static_cast<int>(first));
  const Span* span = space.find(address);
  if (!span || (write && !span->writable)) fault(w, i, at, active, bytes, write);
  const u32 number = space.piece_of(*span, address);
  const Piece& piece = space.pieces()[number];
  i32 delta[kLanes];
  for (u32 lanes = active; lanes; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const i64 distance = static_cast<i64>(at.of(l) - address);
    const u64 offset = at.of(l) - piece.begin, size = piece.end - piece.begin;
    if (offset >= size || bytes > size - offset || distance != static_cast<i32>(distance)) {
      return locate_each(w, i, site, active, at, bytes, write, addresses);
    }
    delta[l] = static_cast<i32>(distance);
  }
  add_executions(site, *w.group->state);
  site.bytes = bytes;
  site.set(active, delta, bytes);
  site.count_segments(static_cast<u32>(address - span->origin) & 127);
  use_span(site, space, *span, number);
  ++site.executions;
  count_lines(*w.group, site, address);
  return {reinterpret_cast<u8*>(address), &site};
}

}  // namespace rdna
