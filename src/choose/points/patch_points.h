// SPDX-License-Identifier: Apache-2.0
// Whether threads of a point kernel have a patch of points along two axes. That is for reductions
// with terms that read one element that changes only along the first axis and another that changes
// only along the second, as products and convolutions do. A patch of 8 by 8 loads 16 elements for
// 64 terms, fewer where windows share them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "decision/decisions.h"
#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::choose {

// A patch, and what it takes.
struct Patch {
  decision::Patch line;
  // Of a thread, in each turn of the loops around the unrolled code:
  double slots = 0;      // instructions
  double waves = 0;      // turns of the cache, for a warp
  double end_slots = 0;  // the same after the loops
  double end_waves = 0;
  ir::Axes around = {};  // these loops
};

// Cycles of all threads of a patch on the machine, without memory. `extent`: of an axis.
double patch_cycles(const Patch& patch, const ir::Axes& axes, const target::Target& target,
                    const std::function<double(expr::Expr)>& extent);

// The patch with the fewest cycles at the usual extents; nothing if no two axes allow a patch.
// `buffers`: the tensors that nests read and write.
std::optional<Patch> patch_points(std::span<const lower::MapNest> nests,
                                  const std::map<std::string, ir::TensorType>& buffers,
                                  const target::Target& target,
                                  const std::function<double(expr::Expr)>& usual,
                                  expr::ExprPool& pool);

}  // namespace nautilus::choose
