// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/floor.h"

#include "driver/run/work_count.h"
#include "ir/target_of.h"
#include "tune/records/best.h"

namespace nautilus::tune {

std::optional<Floors> floors_of(const Subject& subject) {
  driver::Unit unit;
  const auto program = load(subject, unit);
  if (!program || program->level->name != "spec") return std::nullopt;
  ir::Environment env;
  for (const auto& [name, size] : hinted_sizes(*program)) env.sizes.emplace(name, size);
  diag::Sink ignored(unit.sources);
  if (!ir::complete(*program, {}, env, ignored)) return std::nullopt;
  const driver::Work work = driver::count_work(*program, env, unit);
  if (work.bytes <= 0) return std::nullopt;
  const target::Target& target = ir::target_of(*program);
  const double cycles_per_second = 1e9 * target.board.clock_ghz;
  return Floors{.flops = work.flops,
                .bytes = work.bytes,
                .may_skip = work.may_skip,
                .flops_per_second = 2 * target.costs.products_per_cycle *
                                    static_cast<double>(target.board.sms) * cycles_per_second,
                .bytes_per_second = target.costs.memory_bytes_per_cycle * cycles_per_second};
}

double floor_of(const Subject& subject) {
  if (subject.emulates) return 0;
  const auto floors = floors_of(subject);
  return floors ? floors->least_ms() : 0;
}

}  // namespace nautilus::tune
