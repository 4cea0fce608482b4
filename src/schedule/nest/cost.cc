// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/cost.h"

#include <algorithm>
#include <cmath>

#include "estimate/registers.h"
#include "schedule/nest/nest_work.h"
#include "target/target.h"

namespace nautilus::schedule {

NestCost cost_of(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
                 const Target& target, expr::ExprPool& pool) {
  NestCost cost;
  const NestWork counted = count_work(built, whole, program, target, pool, cost);
  // Tiles on one multiprocessor run one step each at the same time.
  const int64_t all_groups = cost.warp_groups * cost.resident;
  const auto groups = static_cast<double>(all_groups);
  const auto tiles = static_cast<double>(cost.resident);
  const bool is_alone = counted.vector == 0;
  cost.is_alternating = is_alone && cost.warp_groups == 1;
  const size_t g = static_cast<size_t>(std::clamp<int64_t>(all_groups, 1, target::kMostGroups));
  StepFloors& f = cost.floors;
  f.matrix = groups * (is_alone ? counted.matrix * target.costs.alone_factor
                                : counted.matrix * target.costs.mixed_factor[g] +
                                      target.costs.turn_cycles[g]);
  f.vector =
      is_alone ? 0
               : groups * (counted.vector * target.costs.group_factor[g] + target.costs.row_slots);
  f.shared = (groups * counted.read + tiles * counted.copied) / target.costs.shared_bytes_per_cycle;
  f.copy = tiles * counted.moved / target.costs.copy_bytes_per_cycle;
  f.copy_unaligned = f.copy * target.costs.unaligned_factor;
  const double p = target.costs.hiding[g];
  // A group alone that adds up the products of each step waits for them (within 5 % of what 64x128
  // and 64x192 tiles of f32 products take).
  const bool is_exposed = counted.is_waited_for && all_groups == 1;
  const double work = is_alone     ? f.matrix
                      : is_exposed ? f.matrix + f.vector + target.costs.step_floor
                                   : std::pow(std::pow(f.matrix, p) + std::pow(f.vector, p), 1 / p);
  // CTAs that share a multiprocessor are counted as one with all their groups.
  const int64_t budget = estimate::compute_registers({.groups = static_cast<int64_t>(g)}, target);
  const double missing =
      static_cast<double>(counted.tile_registers - budget) + target.costs.other_registers;
  const double spills = is_alone ? 0 : groups * std::max(0.0, missing) * target.costs.spill_cycles;
  const double least = std::max({work + spills, f.shared, target.costs.step_floor});
  const double together = cost.cluster > 1 ? target.costs.cluster_factor : 1;
  cost.step = std::max(least, f.copy) * together;
  cost.step_unaligned = std::max(least, f.copy_unaligned) * together;
  const double after = groups * counted.vector_once;
  if (is_alone) {
    const double epilogue = target.costs.result_cycles * counted.results * groups + after;
    if (cost.is_alternating) {
      // The other group's products run meanwhile; of the last tile nothing hides.
      cost.hidden = epilogue;
      cost.kernel_once = epilogue + target.costs.start_cycles;
    } else {
      cost.once = epilogue;
      cost.kernel_once = target.costs.start_cycles;
    }
  } else {
    cost.once = target.costs.tile_cycles + target.costs.tile_steps * cost.step + after;
  }
  cost.once += groups * counted.matrix_once;
  return cost;
}

}  // namespace nautilus::schedule
