// SPDX-License-Identifier: Apache-2.0
#include "lower/points/write_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "matile/windows.h"

namespace nautilus::lower {
namespace {

const matile::Points& kernel_points(const LoweredKernel& parts) {
  return parts.kernel.as<matile::Kernel>().body[0].as<matile::Points>();
}

}  // namespace

std::string refuse_windows(const LoweredKernel& parts, int64_t turns) {
  const auto sizes = matile::sizes_of_windows(kernel_points(parts));
  if (turns == 0 || sizes.contains(turns)) return "";
  return fmt::format("its windows have {} turns; 0 leaves them loops", fmt::join(sizes, ", "));
}

void set_windows(LoweredKernel& parts, int64_t turns) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto points = kernel.body[0].as<matile::Points>();
  points.windows.reset();
  if (turns > 0) points.windows = turns;
  kernel.body[0] = ir::make(std::move(points));
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower
