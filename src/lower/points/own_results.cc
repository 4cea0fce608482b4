// SPDX-License-Identifier: Apache-2.0
#include "lower/points/own_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "matile/point_layout.h"

namespace nautilus::lower {

using expr::Expr;

bool may_be_own(const ir::TensorType& type, const target::Target& target) {
  int64_t bytes = expr::bytes(type.dtype);
  if (bytes < 4) return false;  // shared memory combines words
  for (const Expr extent : type.dims) {
    if (extent.op() != expr::Op::IntConst || extent.integer() > target.points.private_bytes)
      return false;
    bytes *= extent.integer();
  }
  return bytes > 0 && bytes <= target.points.private_bytes;
}

std::string own_results(LoweredKernel& parts, const std::map<std::string, ir::TensorType>& buffers,
                        const target::Target& target, int64_t ctas, ir::Name machine,
                        expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const auto* scatter = matile::points_of(kernel).body.back().get<matile::Scatter>();
  if (!scatter) return "its threads have results, not terms";
  if (!may_be_own(buffers.at(std::string(scatter->target.str())), target))
    return fmt::format(
        "a copy in shared memory has up to {} bytes, a number of elements of 4 or 8 bytes that is "
        "known when compiling",
        target.points.private_bytes);
  matile::PointLayout layout = matile::point_layout(kernel);
  layout.is_private = true;
  auto launch = parts.launch.as<matile::Launch>();
  const Expr together = pool.binary(expr::Op::Mul, pool.integer(ctas), pool.index(machine));
  launch.grid = pool.binary(expr::Op::Min, launch.grid, together);
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return "";
}

}  // namespace nautilus::lower
