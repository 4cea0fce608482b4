// SPDX-License-Identifier: Apache-2.0
// A CUDA device, its memory and its kernels, through the driver library found at run time.
//
// The device's primary context is used, the one that frameworks in the same process share. Every
// failure is a text that says what to do; nothing here prints or ends the process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::runtime {

using DevicePointer = unsigned long long;

struct DeviceInfo {
  int index = 0;
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // with opt-in
  size_t memory_bytes = 0;
};

struct DriverInfo {
  int version = 0;  // 13000 for CUDA 13.0
  std::vector<DeviceInfo> devices;
};
// What the machine offers. Empty (and why) without a driver; a driver without devices gives an
// empty list.
std::optional<DriverInfo> driver_info(std::string* error);

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
};

class Device {
 public:
  // Opens a device that can run code for `architecture` ("sm_90a"; empty: any).
  static std::unique_ptr<Device> open(int index, std::string_view architecture, std::string* error);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }

  std::optional<DevicePointer> allocate(size_t bytes, std::string* error);
  void free(DevicePointer pointer);
  bool upload(DevicePointer to, const void* from, size_t bytes, std::string* error);
  bool download(void* to, DevicePointer from, size_t bytes, std::string* error);
  // Fills memory with a byte: 0xFF makes every float a NaN, which is how outputs are poisoned.
  bool fill(DevicePointer to, unsigned char byte, size_t bytes, std::string* error);

  // A kernel of a compiled module; it lives as long as the device.
  std::optional<void*> load_kernel(const std::string& cubin, const std::string& name,
                                   std::string* error);
  // Parameters as the driver wants them: one pointer per kernel parameter.
  bool launch(void* kernel, const LaunchShape& shape, std::vector<void*> parameters,
              std::string* error);
  bool synchronize(std::string* error);

 private:
  Device() = default;
  DeviceInfo info_;
  int handle_ = 0;
  void* context_ = nullptr;
  std::vector<void*> modules_;
};

// True if a device of compute capability major.minor runs machine code for `architecture`: the same
// major version, a minor version not newer, and exactly that device for architecture-specific code
// (`sm_90a`).
bool can_run(std::string_view architecture, int major, int minor);

}  // namespace nautilus::runtime
