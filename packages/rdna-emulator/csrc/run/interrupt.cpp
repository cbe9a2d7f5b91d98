#include "run/interrupt.hpp"

#include <mutex>

namespace rdna {
namespace {

std::mutex mutex;  // of what follows, but the handler reads `program` without it: it is set before the handler is
u64 watches = 0;
bool installed = false;
struct sigaction program = {};  // what the program wants done

}  // namespace

std::atomic<u64> InterruptWatch::interrupts_{0};

void InterruptWatch::on_interrupt(int number, siginfo_t* info, void* context) {
  interrupts_.fetch_add(1, std::memory_order_relaxed);
  program.sa_flags & SA_SIGINFO ? program.sa_sigaction(number, info, context) : program.sa_handler(number);
}

InterruptWatch::InterruptWatch() : before_(interrupts_.load()) {
  const std::lock_guard lock(mutex);
  if (watches++) return;
  if (sigaction(SIGINT, nullptr, &program)) return;
  if (!(program.sa_flags & SA_SIGINFO) && (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN)) return;
  struct sigaction own = program;
  own.sa_flags |= SA_SIGINFO;
  own.sa_sigaction = on_interrupt;
  installed = sigaction(SIGINT, &own, nullptr) == 0;
}

// A handler that the program has set meanwhile stays.
InterruptWatch::~InterruptWatch() {
  const std::lock_guard lock(mutex);
  if (--watches || !installed) return;
  installed = false;
  struct sigaction present = {};
  const bool own = sigaction(SIGINT, nullptr, &present) == 0 && present.sa_flags & SA_SIGINFO &&
                   present.sa_sigaction == on_interrupt;
  if (own) sigaction(SIGINT, &program, nullptr);
}

}  // namespace rdna
