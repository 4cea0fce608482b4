// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_to_kernels.h"

#include <algorithm>

#include "driver/pipeline.h"
#include "driver/scheduling.h"
#include "matile/ops.h"

namespace nautilus::driver {

namespace {

bool has_split(const schedule::Schedule& s) {
  return std::any_of(s.decisions.begin(), s.decisions.end(),
                     [](const schedule::Decision& d) { return d.verb == "split"; });
}

}  // namespace

bool has_empty_input(const ir::Environment& env) {
  return std::any_of(env.tensors.begin(), env.tensors.end(),
                     [](const auto& t) { return t.second.data.empty(); });
}

std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit,
                                            bool use_tiles) {
  if (program.level->name == "matile") {
    if (!matile::verify_final(program, unit.sink)) return std::nullopt;
    return program;
  }
  ir::PassContext context{unit.pool, unit.sink, {}};
  if (program.level->name != "spec" || !use_tiles) return lower_to("matile", program, context);
  // A schedule whose tiles have no kernel is no error: parts may be in the way, and every program
  // has kernels without tiles.
  for (const bool with_parts : {true, false}) {
    const auto scheduled = first_schedule(program, unit, with_parts);
    if (!scheduled) return std::nullopt;
    diag::Sink refusals(unit.sources);
    ir::PassContext own{unit.pool, refusals, {}};
    if (auto tiles = lower_to("matile", scheduled->program, own)) return tiles;
    if (!has_split(scheduled->decisions)) break;
  }
  return lower_to("matile", program, context);
}

}  // namespace nautilus::driver
