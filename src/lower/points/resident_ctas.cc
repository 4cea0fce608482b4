// SPDX-License-Identifier: Apache-2.0
#include "lower/points/resident_ctas.h"

#include <algorithm>

#include "matile/ops.h"

namespace nautilus::lower {

int64_t usual_resident(const LoweredKernel& parts, const target::Points& choice) {
  const auto& points = parts.kernel.as<matile::Kernel>().body[0].as<matile::Points>();
  const bool is_window = points.spread && !points.points_of_line;
  const bool is_walk = std::any_of(points.body.begin(), points.body.end(),
                                   [](const ir::Op& op) { return op.is<matile::LaneLoop>(); });
  // More sums of a thread leave registers for fewer of them.
  const int64_t sums = points.patch_high.value_or(1) * points.patch_wide.value_or(1);
  const int64_t more = std::max<int64_t>(sums / choice.patch_usual, 1);
  const int64_t threads = points.patch ? choice.patch_threads / more
                          : is_window  ? choice.window_threads
                          : is_walk    ? choice.walk_resident
                                       : 0;
  return std::max<int64_t>(threads / choice.threads, 1);
}

void set_resident(LoweredKernel& parts, int64_t ctas) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto points = kernel.body[0].as<matile::Points>();
  points.resident.reset();
  if (ctas > 1) points.resident = ctas;
  kernel.body[0] = ir::make(std::move(points));
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower
