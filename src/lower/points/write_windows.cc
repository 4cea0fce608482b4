// SPDX-License-Identifier: Apache-2.0
#include "lower/points/write_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "matile/point_layout.h"
#include "matile/windows.h"

namespace nautilus::lower {

std::string refuse_windows(const LoweredKernel& parts, int64_t turns) {
  const auto sizes = matile::sizes_of_windows(parts.kernel.as<matile::Kernel>());
  if (turns == 0 || sizes.contains(turns)) return "";
  return fmt::format("its windows have {} turns; 0 leaves them loops", fmt::join(sizes, ", "));
}

void set_windows(LoweredKernel& parts, int64_t turns) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::PointLayout layout = matile::point_layout(kernel);
  layout.windows.reset();
  if (turns > 0) layout.windows = turns;
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower
