// SPDX-License-Identifier: Apache-2.0
#include "lower/points/resident_ctas.h"

#include "matile/ops.h"

namespace nautilus::lower {

void set_resident(LoweredKernel& parts, int64_t ctas) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto points = kernel.body[0].as<matile::Points>();
  points.resident.reset();
  if (ctas > 1) points.resident = ctas;
  kernel.body[0] = ir::make(std::move(points));
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower
