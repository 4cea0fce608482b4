// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_driver.h"

#include <fmt/format.h>

namespace nautilus::runtime {
namespace {

// What to do about a status; empty where its description says enough.
std::string_view advice(int status) {
  switch (status) {
    case kOutOfMemory:
      return "use smaller sizes or end other processes on the GPU";
    case kStubLibrary:
      return "libcuda.so.1 is the stub of the CUDA toolkit; take its folder out of "
             "LD_LIBRARY_PATH and install the NVIDIA driver";
    case kNewerDriverNeeded:
    case kUnsupportedPtxVersion:
      return "the driver is too old; update the NVIDIA driver (CUDA 12.3 or newer)";
    case kDeviceUnavailable:
      return "another process holds the GPU; end it or set CUDA_VISIBLE_DEVICES";
    case kNoDevice:
      return "is the GPU visible to this process (CUDA_VISIBLE_DEVICES)?";
    case kInvalidHandle:
      return "is the stream, event or kernel of this device, and still alive?";
    case kOutOfResources:
      return "a block needs more registers, threads or shared memory than there are; choose a "
             "smaller tile or fewer warps";
    case kLaunchTimeout:
      return "the kernel ran too long for a GPU that also drives a display";
    case kDriverMismatch:
      return "the kernel module and libcuda are of different versions; reboot or reinstall the "
             "driver";
    default:
      break;
  }
  if (status == kIllegalAddress || status == kAssert ||
      (status >= kFirstKernelFault && status <= kLastKernelFault)) {
    return "a kernel stopped with a fault, this one or one before it; run the program under "
           "`compute-sanitizer` to see which access; the GPU is lost to this process, so start it "
           "again";
  }
  if (status >= kFirstCaptureError && status <= kLastCaptureError) {
    return "a graph being captured cannot hold this call; load, allocate, copy and synchronise "
           "before or after the capture, and capture on a stream that is not the default one";
  }
  return "";
}

}  // namespace

template <class F>
void Driver::load(F*& function, const char* name) {
  function = reinterpret_cast<F*>(library.symbol(name));
  if (!function && error.empty()) {
    error = fmt::format(
        "the CUDA driver has no {}: it is too old; update the NVIDIA driver (CUDA 12.3 or newer)",
        name);
  }
}

Driver::Driver() {
  if (!library.is_open()) {
    error =
        "no CUDA driver: libcuda.so.1 was not found; install the NVIDIA driver, or use the "
        "emulator (run --emulate)";
    return;
  }
#define CUDA_FUNCTION(member, symbol, parameters) load(api.member, #symbol);
#include "runtime/cuda_api.def"
#undef CUDA_FUNCTION
  if (!error.empty()) return;
  const int status = api.init(0);
  if (status == kSuccess || status == kNoDevice) return;
  // Not status_text: it asks driver(), which is being made.
  const char* name = nullptr;
  api.error_name(status, &name);
  const std::string_view help = advice(status);
  error =
      fmt::format("the CUDA driver does not start: {}{}{}",
                  name ? name : fmt::format("status {}", status), help.empty() ? "" : "; ", help);
}

const Driver& driver() {
  static const Driver state;
  return state;
}

std::string status_text(int status) {
  const DriverApi& api = driver().api;
  const char* name = nullptr;
  const char* what = nullptr;
  if (api.error_name) api.error_name(status, &name);
  if (api.error_string) api.error_string(status, &what);
  const std::string_view help = advice(status);
  return fmt::format("{} ({}){}{}", name ? name : fmt::format("status {}", status),
                     what ? what : "no description", help.empty() ? "" : "; ", help);
}

bool failed(int status, std::string_view what, std::string* error) {
  if (status == kSuccess) return false;
  *error = fmt::format("{}: {}", what, status_text(status));
  return true;
}

ContextScope::ContextScope(void* context) {
  const DriverApi& api = driver().api;
  void* current = nullptr;
  if (api.context_get(&current) == kSuccess && current == context) return;
  pushed_ = api.context_push(context) == kSuccess;
}

ContextScope::~ContextScope() {
  if (!pushed_) return;
  void* ours = nullptr;
  driver().api.context_pop(&ours);
}

}  // namespace nautilus::runtime
