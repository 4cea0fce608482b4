// SPDX-License-Identifier: Apache-2.0
// The places of the plan's own tensors in one piece of memory: scratch first, which has to be zero,
// then temps.
#pragma once

#include <optional>
#include <string>

#include "plan/frame.h"

namespace nautilus::plan {

class Workspace {
 public:
  // For the plan's scratch and temps; the layout is not computed yet. The plan must outlive this.
  explicit Workspace(const Prepared& plan);

  // Addresses are multiples of it, and so is the memory.
  static constexpr size_t kAlignment = 256;

  // For the sizes of a frame that was evaluated. False (and why) if a tensor is too large.
  // Allocates nothing.
  bool lay_out(Frame& frame, std::string* error);
  // After lay_out: the required memory, and how much of its beginning must be zero.
  size_t bytes() const { return bytes_; }
  size_t zero_bytes() const { return zero_bytes_; }
  void bind(Frame& frame, uint64_t address) const;

 private:
  struct Part {
    int tensor = 0;
    size_t offset = 0;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  const Prepared& plan_;
  std::vector<Part> parts_;  // scratch before temps
  size_t bytes_ = 0;
  size_t zero_bytes_ = 0;
};

}  // namespace nautilus::plan
