// SPDX-License-Identifier: Apache-2.0
// Device memory of a program's inputs and outputs for timing. Inputs are random numbers, drawn and
// uploaded once: kernels of one problem that are timed one after another share them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "expr/dtype.h"
#include "runtime/cuda_device.h"

namespace nautilus::driver {

// The bytes of a tensor of random numbers: floats are normal, none of them 0; integers are 0, as
// scratch and counters require. A block of some MiB is drawn once and repeated from places that
// differ by tensor: zeros would change the power that multipliers use; repetition does not.
class RandomBytes {
 public:
  explicit RandomBytes(uint64_t seed) : seed_(seed) {}
  void fill(expr::DType dtype, int tensor, unsigned char* to, size_t bytes);
  // Bytes after which a tensor repeats itself.
  static size_t period(expr::DType dtype);

 private:
  struct Block {
    expr::DType dtype;
    std::vector<unsigned char> bytes;
  };
  const Block& block(expr::DType dtype);
  uint64_t seed_;
  std::vector<Block> blocks_;
};

// Freed with this object, which must not outlive the device.
class DeviceTensors {
 public:
  DeviceTensors(runtime::Device& device, uint64_t seed) : device_(device), random_(seed) {}
  ~DeviceTensors();
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  // The memory of a tensor; the same memory for the same name and size. Nothing, and why, if it
  // cannot be allocated.
  std::optional<runtime::DevicePointer> input(const std::string& name, expr::DType dtype,
                                              size_t bytes, std::string* error);
  std::optional<runtime::DevicePointer> output(const std::string& name, size_t bytes,
                                               std::string* error);

 private:
  std::optional<runtime::DevicePointer> memory(const std::string& name, size_t bytes, bool* is_new,
                                               std::string* error);
  struct Memory {
    runtime::DevicePointer pointer;
    size_t bytes;
  };
  runtime::Device& device_;
  RandomBytes random_;
  std::map<std::string, Memory> memory_;
};

}  // namespace nautilus::driver
