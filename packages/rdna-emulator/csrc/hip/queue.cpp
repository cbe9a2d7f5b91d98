// Streams: work in its order, waits between them, and captures.
#include <cstring>

#include "hip/runtime.hpp"

namespace rdna::hip {
namespace {

hipError_t run(Runtime& runtime, Work& work) {
  switch (work.kind) {
    case Work::Kind::launch: return launch(runtime, work);
    case Work::Kind::copy: std::memmove(work.to, work.from, work.bytes); return hipSuccess;
    case Work::Kind::fill: std::memset(work.to, work.value, work.bytes); return hipSuccess;
    case Work::Kind::wait: return run_until(runtime, *work.at->stream, work.at->position);
    case Work::Kind::mark: work.at->time = std::chrono::steady_clock::now(); return hipSuccess;
  }
  return hipErrorUnknown;
}

// Blocking streams and the null stream of a device wait for each other.
void wait_for_others(Runtime& runtime, Stream& stream) {
  const auto wait_for = [&](const std::shared_ptr<Stream>& other) {
    if (other->done == other->enqueued) return;
    Work wait;
    wait.kind = Work::Kind::wait;
    wait.at = std::make_shared<Mark>(Mark{other, other->enqueued, {}});
    stream.queue.push_back(std::move(wait));
    ++stream.enqueued;
  };
  if (!stream.null) {
    if (!(stream.flags & hipStreamNonBlocking)) wait_for(runtime.devices[stream.device]->null_stream);
    return;
  }
  for (const auto& [handle, other] : runtime.streams) {
    if (other->device == stream.device && !(other->flags & hipStreamNonBlocking)) wait_for(other);
  }
}

// The null stream may not be used while a stream that it waits for is captured.
hipError_t forbid_implicit_wait(Runtime& runtime, const Stream& stream) {
  for (const auto& capture : runtime.captures) {
    if (capture->mode == hipStreamCaptureModeRelaxed || capture->origin->device != stream.device) continue;
    if (capture->origin->flags & hipStreamNonBlocking) continue;
    invalidate(*capture);
    return failed(hipErrorStreamCaptureImplicit, "the null stream would wait for a stream that is being captured");
  }
  return hipSuccess;
}

}  // namespace

hipError_t add_to_capture(Stream& stream, Work work) {
  if (stream.capture->invalid) {
    return failed(hipErrorStreamCaptureInvalidated, "the capture was made invalid by an earlier call");
  }
  stream.clock[&stream] = ++stream.captured;
  stream.capture->work.push_back(std::move(work));
  return hipSuccess;
}

hipError_t enqueue(Runtime& runtime, const std::shared_ptr<Stream>& stream, Work work) {
  if (stream->capture) return add_to_capture(*stream, std::move(work));
  if (stream->null && !runtime.captures.empty()) {
    if (const hipError_t error = forbid_implicit_wait(runtime, *stream)) return error;
  }
  if (!runtime.settings.deferred) {
    ++stream->enqueued, ++stream->done;
    return run(runtime, work);
  }
  wait_for_others(runtime, *stream);
  stream->queue.push_back(std::move(work));
  ++stream->enqueued;
  return hipSuccess;
}

hipError_t run_until(Runtime& runtime, Stream& stream, u64 position) {
  while (stream.done < position && !stream.queue.empty()) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.done;
    const hipError_t error = run(runtime, work);
    DeviceState& device = *runtime.devices[stream.device];
    if (error && !device.failure) device.failure = error, device.failure_text = message();
  }
  return hipSuccess;
}

hipError_t finish(Runtime& runtime, Stream& stream) {
  run_until(runtime, stream, stream.enqueued);
  DeviceState& device = *runtime.devices[stream.device];
  const hipError_t error = std::exchange(device.failure, hipSuccess);
  return error ? failed(error, device.failure_text) : hipSuccess;
}

hipError_t finish_device(Runtime& runtime, int device) {
  for (const auto& [handle, stream] : runtime.streams) {
    if (stream->device == device) run_until(runtime, *stream, stream->enqueued);
  }
  return finish(runtime, *runtime.devices[device]->null_stream);
}

void invalidate(Capture& capture) { capture.invalid = true; }

hipError_t forbid_while_capturing(Runtime& runtime) {
  for (const auto& capture : runtime.captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode == hipStreamCaptureModeRelaxed) continue;
    if (capture->mode == hipStreamCaptureModeThreadLocal && !own) continue;
    invalidate(*capture);
    return failed(hipErrorStreamCaptureUnsupported,
                  "a stream is being captured: memory and modules have to be ready before, and nothing may wait");
  }
  return hipSuccess;
}

std::shared_ptr<Stream> Runtime::stream(hipStream_t handle) {
  if (!handle || handle == hipStreamLegacy) return devices[current_device()]->null_stream;
  const auto found = streams.find(handle);
  return found == streams.end() ? nullptr : found->second;
}

const Allocation* Runtime::allocation(const void* address, u64* begin) const {
  const u64 at = reinterpret_cast<u64>(address);
  auto found = allocations.upper_bound(at);
  if (found == allocations.begin()) return nullptr;
  --found;
  if (at - found->first >= found->second.bytes) return nullptr;
  *begin = found->first;
  return &found->second;
}

void Runtime::forget_spans() {
  for (const auto& device : devices) device->spans_valid = false;
}

}  // namespace rdna::hip
