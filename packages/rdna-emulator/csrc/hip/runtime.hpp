// The state of the emulated runtime. One lock guards it all, launches included.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "hip/code_object.hpp"
#define RDNA_HIP_BUILD
#include "hip/include/hip/hip_runtime_api.h"
#include "hip/settings.hpp"

namespace rdna::hip {

struct Module;
struct Stream;

struct Function {
  Module* module = nullptr;
  const KernelObject* kernel = nullptr;
};

struct Module {
  ~Module();
  int device = 0;
  CodeObject code;
  rdna_module* handle = nullptr;
  std::map<std::string, Function> functions;
};

struct Mark {  // a place in a stream's work
  std::shared_ptr<Stream> stream;
  u64 position = 0;  // reached when so much of the stream's work is done
  std::chrono::steady_clock::time_point time;
};

struct Work {
  enum class Kind { launch, copy, fill, wait, mark } kind = Kind::launch;
  std::shared_ptr<Function> function;  // keeps its module
  u32 grid[3] = {}, block[3] = {};
  u32 dynamic_lds = 0;
  std::vector<u8> arguments;
  u8* to = nullptr;
  const u8* from = nullptr;
  u64 bytes = 0;
  int value = 0;
  std::shared_ptr<Mark> at;  // to wait for, or to reach
};

// How much of each capturing stream's work one has to wait for.
using CaptureClock = std::map<const Stream*, u64>;

struct Capture {
  u64 id = 0;
  Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Work> work;
  std::vector<std::shared_ptr<Stream>> streams;
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  bool null = false;
  std::deque<Work> queue;
  u64 enqueued = 0, done = 0;
  std::shared_ptr<Capture> capture;
  u64 captured = 0;  // work so far in the capture
  CaptureClock clock;
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<Mark> mark;         // null: never recorded
  std::shared_ptr<Capture> capture;   // set where the last record was captured
  CaptureClock clock;
};

struct Graph {
  int device = 0;
  std::vector<Work> work;
};

struct Allocation {
  enum class Kind { device, host, image } kind = Kind::device;
  u64 bytes = 0;
  int device = 0;
  unsigned flags = 0;
  std::string name;
};

struct DeviceState {
  std::string architecture;  // with features
  std::string target;        // without
  u64 used = 0;
  std::shared_ptr<Stream> null_stream;
  rdna_device* handle = nullptr;  // made at the first launch
  hipError_t failure = hipSuccess;  // of deferred work, for the next call that waits
  std::string failure_text;
  std::vector<rdna_span> spans;  // what a kernel may touch
  bool spans_valid = false;
};

// Handles that the caller holds: looked up, so that a wrong one is an error and no crash.
template <class T>
using Handles = std::unordered_map<const void*, std::shared_ptr<T>>;

struct Runtime {
  Settings settings;
  std::vector<std::unique_ptr<DeviceState>> devices;
  std::map<u64, Allocation> allocations;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;
  Handles<Function> functions;
  Handles<Graph> graphs, executables;
  std::vector<std::shared_ptr<Capture>> captures;
  u64 captures_begun = 0;

  // The stream of a handle (null: the current device's own); null where there is none.
  std::shared_ptr<Stream> stream(hipStream_t);
  // The allocation that holds an address, and where it begins; null: none.
  const Allocation* allocation(const void* address, u64* begin) const;
  void forget_spans();
};

int current_device();  // of this thread

// queue.cpp
hipError_t enqueue(Runtime&, const std::shared_ptr<Stream>&, Work);
hipError_t run_until(Runtime&, Stream&, u64 position);
hipError_t finish(Runtime&, Stream&);                  // and gives back what went wrong in deferred work
hipError_t finish_device(Runtime&, int device);
hipError_t forbid_while_capturing(Runtime&);           // calls that are unsafe while a stream captures
hipError_t add_to_capture(Stream&, Work);
void invalidate(Capture&);

// launch.cpp
hipError_t launch(Runtime&, const Work&);
void fill_hidden(const KernelObject&, Work&);

// errors.cpp
hipError_t failed(hipError_t, std::string message);     // keeps the message for this thread
std::string& message();

}  // namespace rdna::hip
