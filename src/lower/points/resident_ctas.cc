// SPDX-License-Identifier: Apache-2.0
#include "lower/points/resident_ctas.h"

#include "matile/point_layout.h"

namespace nautilus::lower {

void set_resident(LoweredKernel& parts, int64_t ctas) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::PointLayout layout = matile::point_layout(kernel);
  layout.resident.reset();
  if (ctas > 1) layout.resident = ctas;
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower
