// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_to_kernels.h"

#include "driver/pipeline.h"
#include "matile/ops.h"

namespace nautilus::driver {

std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit) {
  if (program.level->name == "matile") {
    if (!matile::verify_final(program, unit.sink)) return std::nullopt;
    return program;
  }
  ir::PassContext context{unit.pool, unit.sink, {}};
  return lower_to("matile", program, context);
}

}  // namespace nautilus::driver
