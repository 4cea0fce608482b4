// SPDX-License-Identifier: Apache-2.0
// How many points along the last axis a thread of a point kernel has.
#pragma once

#include <optional>
#include <span>

#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::choose {

// As many as fill a vector of the narrowest elements, if everything that is read along the axis is
// contiguous or the same for neighbours; 1 otherwise, so that neighbouring threads read
// neighbouring elements. In reductions a thread has one point: more threads have more loads in
// flight (softmax along 8192 columns: 0.22 ms with one point, 0.32 with four).
int64_t points_of_line(std::span<const lower::MapNest> nests,
                       const std::map<std::string, ir::TensorType>& buffers,
                       const target::Target& target, expr::ExprPool& pool);

// Whether the nests loop, and what their turns read is the same for neighbours along the last axis.
bool share_turns(std::span<const lower::MapNest> nests, expr::ExprPool& pool);

// Lines of a kernel that transposes a tensor: its reads are contiguous along `axis`, its writes
// along the last axis.
struct PointsAcross {
  int64_t each = 1;    // points of a thread along the last axis
  ir::Name axis;       // the other one
  int64_t across = 1;  // points of a thread along that
};
// As many as fill vectors of the elements written and read; nothing if the kernel transposes no
// tensor, reduces, branches, or has few points.
std::optional<PointsAcross> points_across(std::span<const lower::MapNest> nests,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          const target::Target& target, expr::ExprPool& pool);

// Whether the axes are known to have enough points for several in a thread.
bool has_many(const ir::Axes& axes, const target::Target& target);

}  // namespace nautilus::choose
