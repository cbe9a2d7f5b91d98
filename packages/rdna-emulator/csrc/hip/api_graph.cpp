// Captures of streams, and graphs, which replay what was captured in the order in which it came.
#include <algorithm>
#include <cstdio>

#include "hip/calls.hpp"

using namespace rdna::hip;

namespace {

hipError_t no_stream() { return failed(hipErrorInvalidHandle, "there is no such stream"); }

hipError_t status_of(Runtime& runtime, hipStream_t handle, hipStreamCaptureStatus* status, unsigned long long* id) {
  if (!status) return hipErrorInvalidValue;
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  *status = hipStreamCaptureStatusNone;
  if (!stream->capture) return hipSuccess;
  *status = stream->capture->invalid ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
  if (id) *id = stream->capture->id;
  return hipSuccess;
}

bool all_joined(const Capture& capture) {
  for (const auto& stream : capture.streams) {
    const auto known = capture.origin->clock.find(stream.get());
    if (stream->captured > (known == capture.origin->clock.end() ? 0 : known->second)) return false;
  }
  return true;
}

}  // namespace

RDNA_HIP(hipStreamBeginCapture, (hipStream_t handle, hipStreamCaptureMode mode), Needs::device, {
  if (mode < hipStreamCaptureModeGlobal || mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  if (stream->null) return failed(hipErrorStreamCaptureUnsupported, "the null stream cannot be captured");
  if (stream->capture) return failed(hipErrorIllegalState, "the stream is being captured already");
  auto capture = std::make_shared<Capture>();
  capture->id = ++runtime.captures_begun;
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  stream->capture = capture;
  stream->captured = 0;
  stream->clock.clear();
  runtime.captures.push_back(std::move(capture));
  return hipSuccess;
})

RDNA_HIP(hipStreamEndCapture, (hipStream_t handle, hipGraph_t* graph), Needs::device, {
  if (!graph) return hipErrorInvalidValue;
  const auto stream = runtime.stream(handle);
  if (!stream) return no_stream();
  const auto capture = stream->capture;
  if (!capture) return failed(hipErrorIllegalState, "the stream is not being captured");
  if (capture->origin != stream.get())
    return failed(hipErrorStreamCaptureUnmatched, "the capture began in another stream");
  if (capture->mode != hipStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return failed(hipErrorStreamCaptureWrongThread, "the capture began in another thread");
  }
  *graph = nullptr;
  const bool joined = all_joined(*capture);
  for (const auto& member : capture->streams) {
    if (member->capture == capture) member->capture = nullptr;
  }
  std::erase(runtime.captures, capture);
  if (capture->invalid)
    return failed(hipErrorStreamCaptureInvalidated, "the capture was made invalid by an earlier call");
  if (!joined)
    return failed(hipErrorStreamCaptureUnjoined,
                  "work of another stream was captured, and the first stream does not wait for it");
  auto made = std::make_shared<Graph>();
  made->device = stream->device;
  made->work = std::move(capture->work);
  *graph = reinterpret_cast<hipGraph_t>(made.get());
  runtime.graphs[made.get()] = std::move(made);
  return hipSuccess;
})

RDNA_HIP(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus* status), Needs::device, {
  return status_of(runtime, stream, status, nullptr);
})

RDNA_HIP(hipStreamGetCaptureInfo, (hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id),
         Needs::device, { return status_of(runtime, stream, status, id); })

RDNA_HIP(hipGraphInstantiate,
         (hipGraphExec_t* executable, hipGraph_t handle, hipGraphNode_t* error_node, char* log, size_t log_bytes),
         Needs::device, {
  if (!executable) return hipErrorInvalidValue;
  const auto graph = runtime.graphs.find(handle);
  if (graph == runtime.graphs.end()) return failed(hipErrorInvalidValue, "there is no such graph");
  if (error_node) *error_node = nullptr;
  if (log && log_bytes) *log = 0;
  auto made = std::make_shared<Graph>(*graph->second);
  *executable = reinterpret_cast<hipGraphExec_t>(made.get());
  runtime.executables[made.get()] = std::move(made);
  return hipSuccess;
})

RDNA_HIP(hipGraphLaunch, (hipGraphExec_t handle, hipStream_t stream_handle), Needs::device, {
  const auto found = runtime.executables.find(handle);
  if (found == runtime.executables.end()) return failed(hipErrorInvalidValue, "there is no such executable graph");
  const auto stream = runtime.stream(stream_handle);
  if (!stream) return no_stream();
  const auto graph = found->second;
  if (graph->device != stream->device)
    return failed(hipErrorInvalidValue, "the graph and the stream are of different devices");
  for (const Work& work : graph->work) {
    if (const hipError_t error = enqueue(runtime, stream, work)) return error;
  }
  return hipSuccess;
})

RDNA_HIP(hipGraphExecDestroy, (hipGraphExec_t executable), Needs::device, {
  return runtime.executables.erase(executable) ? hipSuccess
                                               : failed(hipErrorInvalidValue, "there is no such executable graph");
})

RDNA_HIP(hipGraphDestroy, (hipGraph_t graph), Needs::device, {
  return runtime.graphs.erase(graph) ? hipSuccess : failed(hipErrorInvalidValue, "there is no such graph");
})
