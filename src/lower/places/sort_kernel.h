// SPDX-License-Identifier: Apache-2.0
// Kernels whose lanes put rows in order (sort_nests.h), each with lines of its own: how many lanes
// a row has, and how many elements each of them. Rows of an open length have several, of which the
// plan launches the first that has as many elements as a row. Test: test/lower/sort.naut
#pragma once

#include "lower/places/sort_nests.h"
#include "lower/points/points_alternatives.h"

namespace nautilus::lower {

struct SortKernels {
  std::vector<LoweredKernel> kernels;
  expr::Expr is_longer;  // that rows are longer than all of them have elements; null: they are not
};

// Why they cannot be; empty if they can. `kept`: what somebody reads behind the kernel.
std::string refuse_sort(const SortNests& nests, const std::set<std::string>& kept);

// Nothing if a line was refused.
std::optional<SortKernels> sort_kernels(const PointsContext& points, const SortNests& nests,
                                        std::span<const ir::Block> alternatives,
                                        const ir::Block& members, ir::PassContext& context);

// Runs only where rows are longer.
void launch_for_longer(LoweredKernel& kernel, expr::Expr is_longer, expr::ExprPool& pool);

}  // namespace nautilus::lower
