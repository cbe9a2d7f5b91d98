// Streams and events.
#include <algorithm>

#include "hip/calls.hpp"

using namespace rdna::hip;

namespace {

hipError_t create_stream(Runtime& runtime, hipStream_t* handle, unsigned flags) {
  if (!handle || flags > hipStreamNonBlocking) return hipErrorInvalidValue;
  auto stream = std::make_shared<Stream>();
  stream->device = current_device();
  stream->flags = flags;
  *handle = reinterpret_cast<hipStream_t>(stream.get());
  runtime.streams[stream.get()] = std::move(stream);
  return hipSuccess;
}

hipError_t create_event(Runtime& runtime, hipEvent_t* handle, unsigned flags) {
  constexpr unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
  if (!handle || (flags & ~known & 0xffff)) return hipErrorInvalidValue;
  auto event = std::make_shared<Event>();
  event->device = current_device();
  event->flags = flags;
  *handle = reinterpret_cast<hipEvent_t>(event.get());
  runtime.events[event.get()] = std::move(event);
  return hipSuccess;
}

std::shared_ptr<Event> find(const Runtime& runtime, hipEvent_t handle) {
  const auto found = runtime.events.find(handle);
  return found == runtime.events.end() ? nullptr : found->second;
}

hipError_t no_stream() { return failed(hipErrorInvalidHandle, "there is no such stream"); }
hipError_t no_event() { return failed(hipErrorInvalidHandle, "there is no such event"); }

bool reached(const Mark& mark) { return mark.stream->done >= mark.position; }

hipError_t captured(const Event& event) {
  if (!event.capture) return hipSuccess;
  invalidate(*event.capture);
  return failed(hipErrorCapturedEvent, "the event was last recorded in a stream that was being captured");
}

hipError_t wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  if (!event.capture) {
    invalidate(*stream->capture);
    return failed(hipErrorStreamCaptureIsolation, "a captured stream would wait for work that is not captured");
  }
  if (stream->capture && stream->capture != event.capture) {
    invalidate(*stream->capture);
    invalidate(*event.capture);
    return failed(hipErrorStreamCaptureMerge, "a captured stream would wait for another capture");
  }
  if (event.capture->invalid)
    return failed(hipErrorStreamCaptureInvalidated, "the capture was made invalid by an earlier call");
  if (!stream->capture) {
    if (stream->null) return failed(hipErrorStreamCaptureImplicit, "the null stream cannot be captured");
    stream->capture = event.capture;
    stream->captured = 0;
    stream->clock.clear();
    event.capture->streams.push_back(stream);
  }
  for (const auto& [other, work] : event.clock) stream->clock[other] = std::max(stream->clock[other], work);
  return hipSuccess;
}

bool captures(const Runtime& runtime, const std::shared_ptr<Capture>& capture) {
  return std::find(runtime.captures.begin(), runtime.captures.end(), capture) != runtime.captures.end();
}

}  // namespace

RDNA_HIP(hipStreamCreate, (hipStream_t* stream), Needs::device,
         { return create_stream(runtime, stream, hipStreamDefault); })

RDNA_HIP(hipStreamCreateWithFlags, (hipStream_t* stream, unsigned flags), Needs::device, {
  return create_stream(runtime, stream, flags);
})

RDNA_HIP(hipStreamDestroy, (hipStream_t handle), Needs::device, {
  const auto found = runtime.streams.find(handle);
  if (found == runtime.streams.end()) return no_stream();
  const auto stream = found->second;
  if (stream->capture) {
    invalidate(*stream->capture);
    std::erase(runtime.captures, stream->capture);
  }
  run_until(runtime, *stream, stream->enqueued);
  runtime.streams.erase(stream.get());
  return hipSuccess;
})

RDNA_HIP(hipStreamSynchronize, (hipStream_t handle), Needs::device, {
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  if (stream->capture) {
    invalidate(*stream->capture);
    return failed(hipErrorStreamCaptureUnsupported, "the stream is being captured: nothing may wait for it");
  }
  if (stream->null) {
    if (const hipError_t error = forbid_while_capturing(runtime)) return error;
    return finish_device(runtime, stream->device);
  }
  return finish(runtime, *stream);
})

RDNA_HIP(hipStreamQuery, (hipStream_t handle), Needs::device, {
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  if (stream->capture) {
    invalidate(*stream->capture);
    return failed(hipErrorStreamCaptureUnsupported, "the stream is being captured: it cannot be asked");
  }
  if (stream->done == stream->enqueued) return finish(runtime, *stream);
  run_until(runtime, *stream, stream->done + 1);  // who asks in a loop gets there
  return hipErrorNotReady;
})

RDNA_HIP(hipStreamWaitEvent, (hipStream_t handle, hipEvent_t event_handle, unsigned flags), Needs::device, {
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  const auto event = find(runtime, event_handle);
  if (!event) return no_event();
  if (flags) return hipErrorInvalidValue;
  if (stream->capture || (event->capture && captures(runtime, event->capture))) return wait_in_capture(stream, *event);
  if (!event->mark) return hipSuccess;
  Work work;
  work.kind = Work::Kind::wait;
  work.at = event->mark;
  return enqueue(runtime, stream, std::move(work));
})

RDNA_HIP(hipEventCreate, (hipEvent_t* event), Needs::device, { return create_event(runtime, event, hipEventDefault); })

RDNA_HIP(hipEventCreateWithFlags, (hipEvent_t* event, unsigned flags), Needs::device, {
  return create_event(runtime, event, flags);
})

RDNA_HIP(hipEventDestroy, (hipEvent_t handle), Needs::device, {
  return runtime.events.erase(handle) ? hipSuccess : no_event();
})

RDNA_HIP(hipEventRecord, (hipEvent_t handle, hipStream_t stream_handle), Needs::device, {
  const auto event = find(runtime, handle);
  if (!event) return no_event();
  const auto stream = runtime.stream(stream_handle);
  if (!stream) return no_stream();
  if (stream->device != event->device)
    return failed(hipErrorInvalidHandle, "the event and the stream are of different devices");
  if (stream->capture) {
    if (stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
    event->capture = stream->capture;
    event->clock = stream->clock;
    return hipSuccess;
  }
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  Work work;
  work.kind = Work::Kind::mark;
  work.at = mark;
  if (const hipError_t error = enqueue(runtime, stream, std::move(work))) return error;
  mark->position = stream->enqueued;
  event->mark = mark;
  event->capture = nullptr;
  return hipSuccess;
})

RDNA_HIP(hipEventSynchronize, (hipEvent_t handle), Needs::device, {
  const auto event = find(runtime, handle);
  if (!event) return no_event();
  if (const hipError_t error = captured(*event)) return error;
  if (const hipError_t error = forbid_while_capturing(runtime)) return error;
  if (!event->mark) return hipSuccess;
  run_until(runtime, *event->mark->stream, event->mark->position);
  DeviceState& device = *runtime.devices[event->device];
  const hipError_t error = std::exchange(device.failure, hipSuccess);
  return error ? failed(error, device.failure_text) : hipSuccess;
})

RDNA_HIP(hipEventQuery, (hipEvent_t handle), Needs::device, {
  const auto event = find(runtime, handle);
  if (!event) return no_event();
  if (const hipError_t error = captured(*event)) return error;
  if (!event->mark || reached(*event->mark)) return hipSuccess;
  run_until(runtime, *event->mark->stream, event->mark->stream->done + 1);  // who asks in a loop gets there
  return hipErrorNotReady;
})

RDNA_HIP(hipEventElapsedTime, (float* milliseconds, hipEvent_t start_handle, hipEvent_t stop_handle), Needs::device, {
  if (!milliseconds) return hipErrorInvalidValue;
  const auto start = find(runtime, start_handle);
  const auto stop = find(runtime, stop_handle);
  if (!start || !stop) return no_event();
  if (start->capture || stop->capture) return captured(start->capture ? *start : *stop);
  if (!start->mark || !stop->mark) return failed(hipErrorInvalidHandle, "an event was never recorded");
  if ((start->flags | stop->flags) & hipEventDisableTiming)
    return failed(hipErrorInvalidHandle, "an event was made without timing");
  if (start->device != stop->device) return failed(hipErrorInvalidHandle, "the events are of different devices");
  if (!reached(*start->mark) || !reached(*stop->mark)) return hipErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(stop->mark->time - start->mark->time).count();
  return hipSuccess;
})
