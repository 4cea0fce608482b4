// SPDX-License-Identifier: Apache-2.0
// One plan of several that compute the same: a launch takes the one whose sizes are the nearest.
//
//   let far = min(1024 * max(M, 16) / min(M, 16), 1073741824)      from the sizes of a line
//   let near = where(far <= 4096, far, 1073741825)                 from those of a plan
//   let near_2 = ...
//   let nearest = where(near <= near_2, 0, 1)
//   launch a grid where(nearest == 0, n, 0)
//   launch b grid where(nearest == 1 and b_cost < c_cost, m, 0)
//   launch c grid where(nearest == 1 and c_cost <= b_cost, m, 0)
//
// How far sizes are from each other is the product of their ratios, the larger over the smaller, in
// units of 1/1024: sums of logarithms are in the same order, and integers of the plan can say it.
// Of equally near ones the first is taken, and where none is near enough.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/op.h"

namespace nautilus::lower {

struct SizedPlan {
  ir::Program program;  // an MA-tile program with finished kernels
  ir::Block at;         // lines `at` (decision/program_lines.h) with sizes of up to kLargestSize
};

inline constexpr int64_t kLargestSize = int64_t{1} << 31;

struct PlanBySizes {
  ir::Program program;
  // What kernels of each plan are called in the program. Kernels of several plans that are the
  // same but for names are one.
  std::vector<std::map<std::string, std::string>> kernels;
};

// Plans of one program: their sizes, inputs and outputs have the same names.
PlanBySizes plan_by_sizes(const std::vector<SizedPlan>& plans, expr::ExprPool& pool);

}  // namespace nautilus::lower
