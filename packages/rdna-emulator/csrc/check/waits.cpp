// Missing waits: a queue of outstanding operations with their destination registers.
#include <algorithm>

#include "check/shadow.hpp"

namespace rdna {

Outstanding& Queue::push(u8 counters) {
  touched(size_).parts = 0;
  for (int position = 0; position < 3; ++position)
    if (counters >> position & 1) oldest_[position] = std::min(oldest_[position], ended_ + size_);
  return at(size_++);
}

// LDS operations come and go behind global loads that stay: without this the queue would wander through its whole ring.
void Queue::trim() {
  while (size_ && at(size_ - 1).counters == 0) --size_;
}

// Ended operations between others leave the queue as well.
void Queue::remove_ended() {
  u32 kept = 0;
  for (u32 k = 0; k < size_; ++k) {
    if (at(k).counters == 0) continue;
    if (kept != k) at(kept) = at(k), touched(kept) = touched(k);
    ++kept;
  }
  size_ = kept;
  std::fill(std::begin(oldest_), std::end(oldest_), ended_);
}

namespace {

int first_common(const u64* a, const u64* b, int words) {
  for (int k = 0; k < words; ++k)
    if (const u64 common = a[k] & b[k]) return 64 * k + __builtin_ctzll(common);
  return -1;
}

int position_of(u8 counter) { return __builtin_ctz(counter); }

// Keeps the newest `limit` operations of one counter outstanding. Returns whether any has ended.
bool retire(WaveShadow& shadow, u8 counter, u32 limit) {
  u32& outstanding = shadow.outstanding[position_of(counter)];
  if (outstanding <= limit) return false;
  Queue& queue = shadow.queue;
  if (limit > 0 && counter == kLgkmcnt && shadow.unordered > 0) return false;  // which have returned is unknown
  u32 k = queue.oldest(position_of(counter));
  for (; outstanding > limit; ++k) {
    Outstanding& entry = queue.at(k);
    if (!(entry.counters & counter)) continue;
    entry.counters &= ~counter;
    --outstanding;
    if (entry.counters != 0) continue;
    shadow.unordered -= entry.out_of_order;
    for (int word = 0; word < 4; ++word) shadow.pending.v[word] &= ~entry.vgprs[word];
    for (int word = 0; word < 2; ++word) shadow.pending.s[word] &= ~entry.sgprs[word];
  }
  queue.set_oldest(position_of(counter), k);
  return true;
}

// What is pending once operations have ended.
void forget_ended(WaveShadow& shadow) {
  Queue& queue = shadow.queue;
  while (queue.size() && queue.at(0).counters == 0) queue.pop();
  queue.trim();
  if (!shadow.shared_destinations) return;
  // Of two loads into one register (d16 halves), the later may still be outstanding.
  shadow.shared_destinations = queue.size() != 0;
  u64 vgprs[4] = {}, sgprs[2] = {};
  for (u32 k = 0; k < queue.size(); ++k) {
    const Outstanding& entry = queue.at(k);
    if (entry.counters == 0) continue;
    for (int word = 0; word < 4; ++word) vgprs[word] |= entry.vgprs[word];
    for (int word = 0; word < 2; ++word) sgprs[word] |= entry.sgprs[word];
  }
  std::memcpy(shadow.pending.v, vgprs, sizeof vgprs);
  std::memcpy(shadow.pending.s, sgprs, sizeof sgprs);
}

// An operation can only begin once its counters have room: the oldest ones have ended by then.
void make_room(WaveShadow& shadow, u8 counters) {
  bool ended = false;
  for (u8 bit : {kVmcnt, kLgkmcnt, kVscnt})
    if (counters & bit) ended |= retire(shadow, bit, kCounterLimit - 1);
  if (ended) forget_ended(shadow);
  if (shadow.queue.size() < kOutstanding) return;
  shadow.queue.remove_ended();
  if (shadow.queue.size() < kOutstanding) return;
  // Scalar loads, of which nobody can tell which have ended: all have, rather than a false alarm.
  for (u8 bit : {kVmcnt, kLgkmcnt, kVscnt}) retire(shadow, bit, 0);
  forget_ended(shadow);
}

}  // namespace

void apply_wait(WaveShadow& shadow, const WaitLimit& limit) {
  bool ended = false;
  if (limit.vm != 0xff) ended |= retire(shadow, kVmcnt, limit.vm);
  if (limit.lgkm != 0xff) ended |= retire(shadow, kLgkmcnt, limit.lgkm);
  if (limit.vs != 0xff) ended |= retire(shadow, kVscnt, limit.vs);
  if (ended) forget_ended(shadow);
}

void report_pending(Wave& w, const Inst& i, const InstPlan& plan) {
  const WaveShadow& shadow = *w.shadow;
  const auto report = [&](char kind, const char* load, const u64* reads, const u64* waits, const u64* pending, int words) {
    const int reg = first_common(waits, pending, words);
    if (reg < 0) return;
    const int read = first_common(reads, pending, words);
    report_finding(w, i, -1, std::string("missing wait: ") + (read < 0 ? "overwrites " : "reads ") + kind +
                                 std::to_string(read < 0 ? reg : read) + " while the " + load + " into it is outstanding");
  };
  report('v', "load", plan.reads_v, plan.waits_v, shadow.pending.v, 4);
  report('s', "scalar load", plan.reads_s, plan.waits_s, shadow.pending.s, 2);
}

void start_operation(WaveShadow& shadow, const InstPlan& plan) {
  make_room(shadow, plan.counters);
  Outstanding& entry = shadow.queue.push(plan.counters);
  entry.counters = plan.counters;
  for (int position = 0; position < 3; ++position) shadow.outstanding[position] += plan.counters >> position & 1;
  entry.out_of_order = plan.out_of_order;
  shadow.unordered += plan.out_of_order;
  shadow.shared_destinations |= common(plan.writes_v, shadow.pending.v);
  std::memcpy(entry.vgprs, plan.writes_v, sizeof entry.vgprs);
  std::memcpy(entry.sgprs, plan.writes_s, sizeof entry.sgprs);
  for (int word = 0; word < 4; ++word) shadow.pending.v[word] |= plan.writes_v[word];
  for (int word = 0; word < 2; ++word) shadow.pending.s[word] |= plan.writes_s[word];
}

namespace {

Touched* begin_part(WaveShadow& shadow, const LaneAccess& access, bool in_lds) {
  if (shadow.queue.size() == 0) return nullptr;
  Touched& touched = shadow.queue.touched(shadow.queue.size() - 1);
  if (touched.parts == (in_lds ? 2 : 1)) return nullptr;
  touched.in_lds = in_lds;
  touched.access = access.access;
  touched.bytes = access.bytes;
  touched.lanes[touched.parts++] = access.lanes;
  return &touched;
}

}  // namespace

void note_global(WaveShadow& shadow, const LaneAccess& access) {
  if (Touched* touched = begin_part(shadow, access, false)) std::memcpy(touched->global, access.addresses, sizeof touched->global);
}

void note_lds(WaveShadow& shadow, const LaneAccess& access, const u16x& addresses) {
  if (Touched* touched = begin_part(shadow, access, true))
    std::memcpy(touched->lds[touched->parts - 1], &addresses, sizeof touched->lds[0]);
}

}  // namespace rdna
