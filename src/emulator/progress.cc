// SPDX-License-Identifier: Apache-2.0
#include "emulator/progress.h"

#include <algorithm>

namespace nautilus::emulator {
namespace {

constexpr size_t kGranule = 16;

}  // namespace

Progress::Progress(const std::vector<Buffer>& buffers) {
  for (const Buffer& b : buffers) {
    read_.emplace_back((b.bytes + kGranule - 1) / kGranule, false);
    written_.emplace_back(read_.back());
  }
}

void Progress::touch(size_t buffer, size_t offset, size_t bytes, bool is_write, int64_t calls) {
  if (bytes == 0) return;
  std::vector<bool>& seen = is_write ? written_[buffer] : read_[buffer];
  const auto begin = seen.begin() + static_cast<std::ptrdiff_t>(offset / kGranule);
  const auto end = seen.begin() + static_cast<std::ptrdiff_t>((offset + bytes - 1) / kGranule + 1);
  const auto first = std::find(begin, end, false);
  if (first == end) return;
  std::fill(first, end, true);
  last_ = calls;
}

}  // namespace nautilus::emulator
