// SPDX-License-Identifier: Apache-2.0
// Kernels whose lanes put rows in order (sort_nests.h), each with lines of its own: how many lanes
// a row has, and how many elements each of them. Rows of an open length have several, of which the
// plan launches the first that has as many elements as a row; the last one has a line `merge`, and
// puts runs of longer rows in order first (run_kernels.h). Test: test/lower/sort.naut
#pragma once

#include "lower/places/run_kernels.h"

namespace nautilus::lower {

// Why they cannot be; empty if they can. `kept`: what somebody reads behind the kernel.
std::string refuse_sort(const SortNests& nests, const std::set<std::string>& kept);

// Nothing if a line was refused.
std::optional<std::vector<SortKernel>> sort_kernels(const PointsContext& points,
                                                    const SortNests& nests,
                                                    std::span<const ir::Block> alternatives,
                                                    const ir::Block& members,
                                                    ir::PassContext& context);

}  // namespace nautilus::lower
