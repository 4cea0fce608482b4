// SPDX-License-Identifier: Apache-2.0
//
// Tells a long launch from an endless loop. A kernel gets on when it reads or writes global memory
// that nothing in the launch has read or written before, or when a CTA ends; both can happen only a
// limited number of times, so an endless kernel must stop getting on, however long its inputs are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/emulator.h"

namespace nautilus::emulator {

class Progress {
 public:
  explicit Progress(const std::vector<Buffer>& buffers);

  // An access to one of the buffers, after this many calls.
  void touch(size_t buffer, size_t offset, size_t bytes, bool is_write, int64_t calls);
  void cta_ended(int64_t calls) { last_ = calls; }

  int64_t calls_without(int64_t calls) const { return calls - last_; }

 private:
  // By buffer: whether its granules of 16 bytes were read, and written.
  std::vector<std::vector<bool>> read_;
  std::vector<std::vector<bool>> written_;
  int64_t last_ = 0;
};

}  // namespace nautilus::emulator
