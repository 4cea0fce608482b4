// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of a CTA: its bytes and, for every 16 of them (the unit of all asynchronous
// accesses), the copies and products in flight.
#pragma once

#include <cstdint>
#include <vector>

namespace nautilus::emulator {

struct Granule {
  uint16_t loads = 0;     // copies that will write it
  uint16_t stores = 0;    // copies that may still read it
  uint16_t products = 0;  // matrix products that may still read it
  bool is_written = false;
  // The mbarrier and its phase that tell when the last load has arrived; -1: was not loaded.
  int16_t barrier = -1;
  int32_t phase = 0;
  // Per word: 1 + the thread whose ordinary write is not yet fenced, 0 if there is none.
  uint16_t dirty[4] = {};

  bool is_dirty() const { return (dirty[0] | dirty[1] | dirty[2] | dirty[3]) != 0; }
};

class SharedMemory {
 public:
  // What a kernel without static shared memory sees on the device.
  static constexpr uint32_t kBase = 1024;

  explicit SharedMemory(int bytes)
      // All ones are a NaN in every format and no useful integer.
      : bytes_((static_cast<size_t>(bytes) + 15) / 16 * 16, 0xff),
        granules_(bytes_.size() / 16),
        size_(static_cast<uint32_t>(bytes)) {}

  bool contains(uint32_t address, int64_t bytes) const {
    return address >= kBase && bytes >= 0 && int64_t{address} - kBase + bytes <= int64_t{size_};
  }
  uint32_t size() const { return size_; }
  unsigned char* at(uint32_t address) { return bytes_.data() + (address - kBase); }
  static size_t granule_index(uint32_t address) { return (address - kBase) / 16; }
  Granule& granule(uint32_t address) { return granules_[granule_index(address)]; }
  size_t granule_count() const { return granules_.size(); }

 private:
  std::vector<unsigned char> bytes_;
  std::vector<Granule> granules_;
  uint32_t size_;
};

}  // namespace nautilus::emulator
