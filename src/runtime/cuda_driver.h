// SPDX-License-Identifier: Apache-2.0
// The CUDA driver library, found at run time, and what its statuses mean to a user. For the files
// of this folder; others use Device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/shared_library.h"

namespace nautilus::runtime {

using DevicePointer = unsigned long long;

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  union {
    int number;
    char bytes[64];
  };
};
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct DriverApi {
#define CUDA_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "runtime/cuda_api.def"
#undef CUDA_FUNCTION
};

// Numbers of CUresult.
enum DriverStatus {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kStubLibrary = 34,
  kNewerDriverNeeded = 36,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kFirstKernelFault = 714,  // stack, instruction, alignment, address space, program counter
  kLastKernelFault = 719,   // unspecified launch failure
  kDriverMismatch = 803,
  kFirstCaptureError = 900,
  kLastCaptureError = 908,
};

struct Driver {
  Driver();

  SharedLibrary library{{"libcuda.so.1"}};
  DriverApi api;
  std::string error;  // why the driver cannot be used; empty if it can

 private:
  template <class F>
  void load(F*& function, const char* name);
};
const Driver& driver();

// The name and the description that the driver gives, and what to do about it where that is known.
std::string status_text(int status);

// False for success; otherwise writes "what: status_text".
bool failed(int status, std::string_view what, std::string* error);

// Makes a context current for a scope. A thread that already has the context is not changed, and
// any other thread gets its own back: frameworks in the same process rely on their choice.
class ContextScope {
 public:
  explicit ContextScope(void* context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace nautilus::runtime
