// SPDX-License-Identifier: Apache-2.0
#include "choose/program_cost.h"

#include <algorithm>

#include "choose/choose_kernels.h"
#include "choose/nest_cost.h"
#include "ir/target_of.h"
#include "schedule/choose/candidates.h"

namespace nautilus::choose {
namespace {

using expr::Expr;

// The share of what tiles compute along the axis that is not padding.
double filled(Expr extent, int64_t tile) {
  if (!extent || extent.op() != expr::Op::IntConst) return 1;
  const int64_t n = std::max<int64_t>(extent.integer(), 1);
  return static_cast<double>(n) / static_cast<double>((n + tile - 1) / tile * tile);
}

}  // namespace

double program_cost(const ir::Program& scheduled, const std::vector<schedule::Kernel>& kernels,
                    const ir::Program& unscheduled, ir::PassContext& context) {
  const target::Target& target = ir::target_of(scheduled);
  const NestCosts costs(scheduled, target, context.pool);
  double sum = cost_without_tiles(scheduled, context);
  for (const schedule::Kernel& k : kernels) {
    const auto ranked = schedule::rank_candidates(k, unscheduled, target, context.pool);
    sum += costs.over_sizes([&](const ir::Environment& sizes) {
      double least = 0;
      ir::Environment all = sizes;
      schedule::add_scalars(unscheduled, all);
      for (const schedule::Ranked& r : ranked) {
        const auto cycles = static_cast<double>(ir::evaluate(r.cycles, all).i);
        if (r.is_kept && (least == 0 || cycles < least)) least = std::max(cycles, 1.0);
      }
      return target.costs.next_kernel_cycles + least;
    });
  }
  return sum;
}

bool may_lose_to_loops(const schedule::Kernel& kernel, const target::Target& target) {
  const schedule::Fusion& fusion = kernel.fusion;
  if (kernel.split.is_on() || fusion.row_block > 0) return false;
  double most = 0;
  for (const schedule::Dot& d : fusion.dots) {
    const auto extent = [&](Expr axis) { return axis ? fusion.extents.at(axis) : Expr(); };
    most = std::max(most, filled(extent(fusion.row), target.matrix.rows) *
                              filled(extent(d.column), target.matrix.column_step) *
                              filled(extent(d.depth), target.matrix.depth));
  }
  return most < target.nests.empty_tiles;
}

}  // namespace nautilus::choose
