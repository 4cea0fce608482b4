// SPDX-License-Identifier: Apache-2.0
// Which sizes a kernel may have, and which of them become kernels of the program.
//
// Candidates come from legality alone: registers of a thread, shared memory, shapes of the matrix
// instruction. The cost model (cost.h) orders them at a set of problem sizes; the plan gets those
// kernels that together are near the best everywhere, and runs the one that is cheapest at the
// sizes of a launch.
#pragma once

#include "schedule/apply/kernel.h"
#include "schedule/fusion/fitting_sizes.h"
#include "schedule/nest/cost.h"

namespace nautilus::schedule {

struct Ranked {
  TileConfig sizes;
  NestCost cost;
  Expr cycles;
  double at_hints = 0;  // cycles at the program's hints
  bool is_kept = false;
};

// A loop's bounds may contain scalars of a call. Their values are not known here; this adds typical
// ones.
void add_scalars(const ir::Program& program, ir::Environment& env);

// The cost with what registers that leave no room for the compiler's own add to each step.
NestCost with_crowding(NestCost cost, const Fusion& fusion, const TileConfig& sizes,
                       const Target& target);

// The candidates of a kernel: first the chosen ones, then the others by their cycles at the hints.
std::vector<Ranked> rank_candidates(const Kernel& kernel, const ir::Program& program,
                                    const Target& target, expr::ExprPool& pool);

// Gives a kernel the chosen sizes of its candidates.
void choose_kernel(Kernel& kernel, const std::vector<Ranked>& ranked);

// Sizes for parts of the streamed axis: the usual ones (choose_sizes), or those of the kernel where
// the usual ones would be too much code.
TileConfig sizes_for_parts(const Kernel& kernel, const ir::Program& program, const Target& target,
                           expr::ExprPool& pool);

// The candidates of each kernel with their floors, for people.
std::vector<std::string> explain_candidates(const std::vector<Kernel>& kernels,
                                            const ir::Program& program, const Target& target,
                                            expr::ExprPool& pool);

}  // namespace nautilus::schedule
