// SPDX-License-Identifier: Apache-2.0
// Products of matrices that no tile kernel computes: each of their results is a loop of one thread
// or warp, tens to hundreds of times slower than the matrix unit.
#pragma once

#include <string>
#include <vector>

#include "driver/kernels/lower_to_kernels.h"

namespace nautilus::driver {

struct ScalarProduct {
  std::string statement;
  ir::Axes axes;    // of the result
  ir::Axes reduce;  // that it sums over
  std::string why;  // why there is no tile kernel, in the scheduler's words; may be empty
  std::string cure;
};

// Empty for kernels that were given as MA-tile text. Products are found by structure
// (algebra/contraction.h): two factors that change along a summed axis, each with an axis of the
// result that the other lacks.
std::vector<ScalarProduct> scalar_products(const Kernels& kernels, expr::ExprPool& pool);

}  // namespace nautilus::driver
