// SPDX-License-Identifier: Apache-2.0
#include "plan/workspace.h"

#include <fmt/format.h>

#include <limits>

#include "expr/tensor.h"

namespace nautilus::plan {

Workspace::Workspace(const Prepared& plan) : plan_(plan) {
  for (const matile::TensorRole role : {matile::TensorRole::Scratch, matile::TensorRole::Temp}) {
    for (size_t t = 0; t < plan.tensors.size(); ++t) {
      if (plan.tensors[t].role != role) continue;
      const size_t rank = plan.tensors[t].dims.size();
      parts_.push_back(
          {static_cast<int>(t), 0, std::vector<int64_t>(rank), std::vector<int64_t>(rank)});
    }
  }
}

bool Workspace::lay_out(Frame& frame, std::string* error) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  int64_t end = 0;
  zero_bytes_ = 0;
  for (Part& p : parts_) {
    const Prepared::Tensor& tensor = plan_.tensors[static_cast<size_t>(p.tensor)];
    int64_t bytes = expr::bytes(tensor.dtype);
    int64_t step = 1;
    bool fits = true;
    for (size_t k = p.shape.size(); k-- > 0;) {
      p.shape[k] = frame.extent(p.tensor, static_cast<int>(k));
      p.strides[k] = step;
      step = expr::wrapping_mul(step, p.shape[k]);
      fits = fits && !__builtin_mul_overflow(bytes, p.shape[k], &bytes) && bytes < kMost;
    }
    if (!fits || bytes > kMost - end) {
      *error = fmt::format("the plan's own tensor `{}` is too large", tensor.name);
      return false;
    }
    p.offset = static_cast<size_t>(end);
    constexpr auto kUnit = static_cast<int64_t>(kAlignment);
    end += (bytes + kUnit - 1) / kUnit * kUnit;
    if (tensor.role == matile::TensorRole::Scratch) zero_bytes_ = static_cast<size_t>(end);
  }
  bytes_ = static_cast<size_t>(end);
  return true;
}

void Workspace::bind(Frame& frame, uint64_t address) const {
  for (const Part& p : parts_) frame.bind(p.tensor, {address + p.offset, p.shape, p.strides});
}

}  // namespace nautilus::plan
