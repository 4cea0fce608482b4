// SPDX-License-Identifier: Apache-2.0
#include "lower/points/write_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "matile/windows.h"

namespace nautilus::lower {
namespace {

const matile::Points& kernel_points(const LoweredKernel& parts) {
  return parts.kernel.as<matile::Kernel>().body[0].as<matile::Points>();
}

int64_t points_of_thread(const matile::Points& p) {
  if (p.patch) return p.patch_high.value_or(1) * p.patch_wide.value_or(1);
  const int64_t along =
      p.points_of_line.value_or(p.points_apart.value_or(p.points_per_thread.value_or(1)));
  return along * p.points_across.value_or(1) * p.points_down.value_or(1);
}

}  // namespace

std::optional<int64_t> usual_windows(const LoweredKernel& parts, const target::Points& choice) {
  const matile::Points& points = kernel_points(parts);
  const auto sizes = matile::sizes_of_windows(points);
  if (sizes.empty()) return std::nullopt;
  const int64_t most =
      (points.patch ? choice.patch_turns : choice.unrolled) / points_of_thread(points);
  int64_t turns = 0;
  for (const int64_t n : sizes) {
    if (n <= most) turns = std::max(turns, n);
  }
  return turns;
}

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
