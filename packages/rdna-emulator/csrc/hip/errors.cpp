#include "hip/runtime.hpp"

namespace rdna::hip {
namespace {

constexpr struct {
  hipError_t error;
  const char* name;
  const char* text;
} kErrors[] = {
#define RDNA_ERROR(error, text) {error, #error, text}
    RDNA_ERROR(hipSuccess, "no error"),
    RDNA_ERROR(hipErrorInvalidValue, "invalid argument"),
    RDNA_ERROR(hipErrorOutOfMemory, "out of memory"),
    RDNA_ERROR(hipErrorNotInitialized, "initialization error"),
    RDNA_ERROR(hipErrorInvalidConfiguration, "invalid configuration argument"),
    RDNA_ERROR(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    RDNA_ERROR(hipErrorInvalidDeviceFunction, "invalid device function"),
    RDNA_ERROR(hipErrorNoDevice, "no ROCm-capable device is detected"),
    RDNA_ERROR(hipErrorInvalidDevice, "invalid device ordinal"),
    RDNA_ERROR(hipErrorInvalidImage, "device kernel image is invalid"),
    RDNA_ERROR(hipErrorInvalidContext, "invalid device context"),
    RDNA_ERROR(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device"),
    RDNA_ERROR(hipErrorInvalidKernelFile, "invalid kernel file"),
    RDNA_ERROR(hipErrorFileNotFound, "file not found"),
    RDNA_ERROR(hipErrorSharedObjectInitFailed, "shared object initialization failed"),
    RDNA_ERROR(hipErrorInvalidHandle, "invalid resource handle"),
    RDNA_ERROR(hipErrorIllegalState, "the operation cannot be performed in the present state"),
    RDNA_ERROR(hipErrorNotFound, "named symbol not found"),
    RDNA_ERROR(hipErrorNotReady, "device not ready"),
    RDNA_ERROR(hipErrorIllegalAddress, "an illegal memory access was encountered"),
    RDNA_ERROR(hipErrorLaunchOutOfResources, "out of resources"),
    RDNA_ERROR(hipErrorLaunchTimeOut, "the launch timed out and was terminated"),
    RDNA_ERROR(hipErrorAssert, "device-side assert triggered"),
    RDNA_ERROR(hipErrorLaunchFailure, "unspecified launch failure"),
    RDNA_ERROR(hipErrorNotSupported, "operation not supported"),
    RDNA_ERROR(hipErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    RDNA_ERROR(hipErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    RDNA_ERROR(hipErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    RDNA_ERROR(hipErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    RDNA_ERROR(hipErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    RDNA_ERROR(hipErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    RDNA_ERROR(hipErrorStreamCaptureImplicit,
               "operation would make the legacy stream depend on a capturing blocking stream"),
    RDNA_ERROR(hipErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    RDNA_ERROR(hipErrorStreamCaptureWrongThread,
               "attempt to terminate a thread-local capture sequence from another thread"),
    RDNA_ERROR(hipErrorUnknown, "unknown error"),
#undef RDNA_ERROR
};

}  // namespace

std::string& message() {
  thread_local std::string text;
  return text;
}

hipError_t failed(hipError_t error, std::string text) {
  message() = std::move(text);
  return error;
}

}  // namespace rdna::hip

extern "C" [[gnu::visibility("default")]] const char* hipGetErrorName(hipError_t error) {
  for (const auto& known : rdna::hip::kErrors) {
    if (known.error == error) return known.name;
  }
  return "hipErrorUnknown";
}

extern "C" [[gnu::visibility("default")]] const char* hipGetErrorString(hipError_t error) {
  for (const auto& known : rdna::hip::kErrors) {
    if (known.error == error) return known.text;
  }
  return "unknown error";
}
