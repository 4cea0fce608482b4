// SPDX-License-Identifier: Apache-2.0
#include "driver/run/device_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/random.h"

namespace nautilus::driver {
namespace {

// A prime, so that no row of a matrix meets the same numbers as its neighbour.
constexpr int64_t kBlockElements = 4194301;

}  // namespace

size_t RandomBytes::period(expr::DType dtype) {
  return static_cast<size_t>(kBlockElements * expr::bytes(dtype));
}

const RandomBytes::Block& RandomBytes::block(expr::DType dtype) {
  for (const Block& b : blocks_) {
    if (b.dtype == dtype) return b;
  }
  constexpr int64_t kChunk = 65536;
  const auto width = static_cast<size_t>(expr::bytes(dtype));
  Block b{dtype, std::vector<unsigned char>(static_cast<size_t>(kBlockElements) * width)};
  base::parallel_for(
      (kBlockElements + kChunk - 1) / kChunk, base::default_threads(), [&](int64_t c) {
        base::Random random(seed_ + 0x9E37 * static_cast<uint64_t>(c + 1));
        for (int64_t i = c * kChunk; i < std::min(kBlockElements, (c + 1) * kChunk); ++i) {
          double value = expr::round_to(dtype, random.normal());
          if (value == 0) value = 1;
          const uint64_t bits = expr::encode(dtype, value);
          std::memcpy(b.bytes.data() + static_cast<size_t>(i) * width, &bits, width);
        }
      });
  blocks_.push_back(std::move(b));
  return blocks_.back();
}

void RandomBytes::fill(expr::DType dtype, int tensor, unsigned char* to, size_t bytes) {
  if (!expr::is_float(dtype)) {
    std::memset(to, 0, bytes);
    return;
  }
  const Block& b = block(dtype);
  const auto width = static_cast<size_t>(expr::bytes(dtype));
  base::Random random(seed_ + static_cast<uint64_t>(tensor) * 7919);
  size_t from = random.next() % (b.bytes.size() / width) * width;
  for (size_t at = 0; at < bytes;) {
    const size_t n = std::min(bytes - at, b.bytes.size() - from);
    std::memcpy(to + at, b.bytes.data() + from, n);
    at += n;
    from = 0;
  }
}

DeviceTensors::~DeviceTensors() {
  for (const auto& [name, m] : memory_) device_.free(m.pointer);
}

std::optional<runtime::DevicePointer> DeviceTensors::memory(const std::string& name, size_t bytes,
                                                            bool* is_new, std::string* error) {
  const auto it = memory_.find(name);
  *is_new = it == memory_.end() || it->second.bytes != bytes;
  if (!*is_new) return it->second.pointer;
  if (it != memory_.end()) {
    device_.free(it->second.pointer);
    memory_.erase(it);
  }
  const auto pointer = device_.allocate(std::max<size_t>(bytes, 16), error);
  if (pointer) memory_.emplace(name, Memory{*pointer, bytes});
  return pointer;
}

std::optional<runtime::DevicePointer> DeviceTensors::input(const std::string& name,
                                                           expr::DType dtype, size_t bytes,
                                                           std::string* error) {
  bool is_new = false;
  const auto number = static_cast<int>(memory_.size());
  const auto pointer = memory(name, bytes, &is_new, error);
  if (!pointer || !is_new) return pointer;
  // One period; the device repeats it faster than memory of the host is filled.
  std::vector<unsigned char> host(std::min(bytes, RandomBytes::period(dtype)));
  random_.fill(dtype, number, host.data(), host.size());
  if (!device_.upload(*pointer, host.data(), host.size(), error) ||
      !device_.repeat(*pointer, host.size(), bytes, error))
    return std::nullopt;
  return pointer;
}

std::optional<runtime::DevicePointer> DeviceTensors::output(const std::string& name, size_t bytes,
                                                            std::string* error) {
  bool is_new = false;
  return memory(name, bytes, &is_new, error);
}

}  // namespace nautilus::driver
