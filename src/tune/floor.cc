// SPDX-License-Identifier: Apache-2.0
#include "tune/floor.h"

#include <algorithm>

#include "driver/run/work_count.h"
#include "ir/target_of.h"
#include "tune/best.h"

namespace nautilus::tune {

double floor_of(const Subject& subject) {
  if (subject.emulates) return 0;
  driver::Unit unit;
  const auto program = load(subject, unit);
  if (!program) return 0;
  ir::Environment env;
  for (const auto& [name, size] : hinted_sizes(*program)) env.sizes.emplace(name, size);
  diag::Sink ignored(unit.sources);
  if (!ir::complete(*program, {}, env, ignored)) return 0;
  const driver::Work work = driver::count_work(*program, env, unit);
  const target::Target& target = ir::target_of(*program);
  const double cycles = std::max(
      work.bytes / target.costs.memory_bytes_per_cycle,
      work.flops / (2 * target.costs.products_per_cycle * static_cast<double>(target.board.sms)));
  return cycles / (target.board.clock_ghz * 1e6);
}

}  // namespace nautilus::tune
