// SPDX-License-Identifier: Apache-2.0
// Which ops of a loop run an iteration late, and in which order (pipeline_loops.h says when an
// order is legal).
#pragma once

#include <optional>
#include <vector>

#include "vrtile/names.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

// The stages of a loop's ops and their order.
struct StagePlan {
  std::vector<ir::Op> ops;  // without carries, in their order
  std::vector<Carry> carries;
  std::vector<int> stage;     // by position in ops
  std::vector<size_t> order;  // positions in ops
};

// Empty if no product needs another one, or if no legal order was found.
std::optional<StagePlan> stages_of(const For& loop, Names& names, expr::ExprPool& pool);

}  // namespace nautilus::vrtile
