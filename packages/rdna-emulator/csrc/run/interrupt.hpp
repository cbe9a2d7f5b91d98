// Ctrl-C while launches run. The program's own handler still gets the signal; besides, the launches end early.
#pragma once
#include <signal.h>

#include <atomic>

#include "core/machine.hpp"

namespace rdna {

// While one exists, interrupts are seen. A program that ignores them, or that they end, is left alone.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  // Whether one has come since the watch began.
  RDNA_INLINE bool interrupted() const { return interrupts_.load(std::memory_order_relaxed) != before_; }

 private:
  static void on_interrupt(int, siginfo_t*, void*);
  static std::atomic<u64> interrupts_;
  const u64 before_;
};

}  // namespace rdna
