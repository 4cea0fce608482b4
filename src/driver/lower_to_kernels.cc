// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_to_kernels.h"

#include "driver/pipeline.h"
#include "driver/scheduling.h"
#include "matile/ops.h"

namespace nautilus::driver {

std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit) {
  if (program.level->name == "matile") {
    if (!matile::verify_final(program, unit.sink)) return std::nullopt;
    return program;
  }
  ir::PassContext context{unit.pool, unit.sink, {}};
  if (program.level->name != "spec") return lower_to("matile", program, context);
  // Lowering a schedule tells whether its kernels have a form; only where one has none it pays to
  // look at each alone. Together they may still not fit, which is no error: every program has
  // kernels without tiles.
  for (const bool is_tried : {false, true}) {
    const auto scheduled =
        is_tried ? first_schedule(program, unit) : untried_schedule(program, unit);
    if (!scheduled && is_tried) return std::nullopt;
    if (!scheduled) continue;
    diag::Sink refusals(unit.sources);
    ir::PassContext own{unit.pool, refusals, {}};
    if (auto tiles = lower_to("matile", scheduled->program, own)) return tiles;
  }
  return lower_to("matile", program, context);
}

std::optional<ir::Program> lower_with_schedule(const ir::Program& program, std::string_view text,
                                               Unit& unit, std::string* error) {
  if (program.level->name != "spec") {
    *error = "a schedule is for a program of the math language";
    return std::nullopt;
  }
  const auto scheduled = replay_schedule(program, text, unit, error);
  if (!scheduled) return std::nullopt;
  ir::PassContext context{unit.pool, unit.sink, {}};
  return lower_to("matile", scheduled->program, context);
}

}  // namespace nautilus::driver
