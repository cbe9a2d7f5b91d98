// Workgroups in flight: their memory, how their waves begin, and what the scheduler does with them.
#pragma once
#include <random>

#include "run/launch.hpp"

namespace rdna {

constexpr u32 kTurn = 4096;  // branches backwards before a wave is looked at

// Memory for one workgroup at a time, kept from one to the next.
class Slot {
 public:
  ~Slot();
  // Prepares workgroup `number` of the launch, its waves at the kernel's first instruction.
  void begin(Launch&, Worker&, u64 number);
  void end();
  bool busy() const { return busy_; }
  Workgroup& group() { return group_; }

 private:
  void reserve(u32 waves, u64 lds_bytes, u64 scratch_bytes);
  void begin_wave(Wave&, u32 index);

  Workgroup group_;
  std::vector<Wave*> waves_;
  u8* lds_ = nullptr;
  u8* scratch_ = nullptr;
  u64 lds_size_ = 0, scratch_size_ = 0;
  bool busy_ = false;
};

// Runs a wave until it leaves the loop, at most `limit` instructions where that is not 0.
void run_wave(Wave&, u64 limit);

// What a run of the wave ended with. Releases the barrier when all have arrived.
void settle(Workgroup&, Wave&);

struct SlotSet {
  std::vector<std::unique_ptr<Slot>> slots;
  Slot& free_slot();
  u64 busy() const;
};

// Every worker calls one of these with the same launch; they return when no workgroup is left or one has failed.
void run_in_order(Launch&, Worker&, SlotSet&);
void run_at_random(Launch&, Worker&, SlotSet&, u64 seed);

// Spin detection (spin.cpp).
void resume_probe(Workgroup&, Wave&);
bool is_stuck(const Workgroup&, const Wave&);
bool is_watched(const Workgroup&, const Wave&);
void worker_begins(Quiet&);
void worker_ends(Quiet&);
// All waves of the worker spin, and a whole round of them has changed nothing. Returns after a wait, for another round;
// throws when no other worker can help either. `entered` and `confirmed_epoch` belong to one wait of the worker.
struct SpinWait {
  bool entered = false;
  u64 epoch = 0;            // at the beginning of the round that has just ended
  bool all_waiting = false; // at that time
  u64 confirmed_epoch = ~u64{0};
};
void wait_for_others(Launch&, SpinWait&, Workgroup&);
void stop_waiting(Launch&, SpinWait&);

}  // namespace rdna
