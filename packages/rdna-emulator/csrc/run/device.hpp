// A device: its threads, and the code objects loaded on it.
#pragma once
#include <condition_variable>
#include <functional>
#include <thread>

#include "isa/op.hpp"
#include "run/workgroup.hpp"

namespace rdna {

constexpr u32 kClasses = static_cast<u32>(OpClass::other) + 1;

struct Module {
  Program program;
  std::vector<NamedSpan> spans;  // of the loaded image
  std::vector<std::unique_ptr<ProgramState>> states;  // of each worker
};

struct LaunchRequest {
  Kernel kernel;
  Dim3 grid, block;
  u32 dynamic_lds = 0;
  u32 checks = 0;  // and kMeasureModel
  ModelParameters model = {};
  bool collect = false;
  bool random = false;
  u64 seed = 0;
  const void* kernarg = nullptr;
  u64 kernarg_bytes = 0;
  std::vector<NamedSpan> spans;
};

struct LaunchOutcome {
  bool failed = false;
  Fault fault = Fault::unsupported;
  std::string message;
  std::vector<std::string> findings;
  ModelResult model;
  u64 wave_instructions = 0;
  u64 by_class[kClasses] = {};
  u64 requested = 0;  // bytes asked of global memory
  Traffic traffic;
  u64 unique_lines = 0;
  std::vector<NamedSpan> spans;  // with their counts, in address order
};

class Device {
 public:
  explicit Device(u32 threads);
  ~Device();
  LaunchOutcome launch(Module&, const LaunchRequest&);

 private:
  struct Seat {
    Worker worker;
    SlotSet slots;
  };
  using Job = std::function<void(Seat&)>;

  void serve(Seat&);
  void run(const Job&, u32 helpers);  // on this thread and at most so many others
  void collect(Module&, LaunchOutcome&, Launch&);

  std::mutex launching_;  // one launch at a time
  std::vector<std::unique_ptr<Seat>> seats_;  // the first is the caller's
  SparseBits line_bits_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, done_;
  const Job* job_ = nullptr;
  u32 wanted_ = 0;    // helpers that may still take the job
  u32 working_ = 0;
  bool closing_ = false;
};

}  // namespace rdna
