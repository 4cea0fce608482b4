// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points.h"

#include "emit/identifier.h"
#include "emit/launch_order.h"
#include "emit/params.h"
#include "emit/points/points_body.h"
#include "emit/points/points_decode.h"
#include "emit/points/points_own.h"
#include "emit/points/points_scope.h"

namespace nautilus::emit {

KernelText emit_points(const ir::Program& program, const matile::Kernel& kernel,
                       expr::ExprPool& pool) {
  PointsScope scope(program, kernel, pool);
  const PointsGrid& grid = scope.grid;
  KernelText text;
  text.name = kernel_identifier(kernel.name.str());
  text.threads = static_cast<int>(grid.threads);
  scope.globals = collect_params(program, kernel, text);
  scope.out.line("// {} threads, {}", grid.threads, grid.described());
  if (const auto resident = matile::point_layout(kernel).resident)
    scope.out.open("KERNEL_MIN_CTAS({}, {}, {}) {{", text.name, grid.threads, *resident);
  else
    scope.out.open("KERNEL({}, {}) {{", text.name, grid.threads);
  scope.out.line("ROLE(\"points\");");
  const LaunchOrder order = launch_order(program, kernel);
  text.may_begin_early = order.is_early;
  text.has_ordered_reads = kernel.reads == decision::ReadOrder::Ordered;
  if (order.is_followed) scope.out.line("let_next_kernel_begin();");
  const std::optional<expr::Reducer> reducer = reducer_of_own(scope);
  if (reducer) begin_own(scope, *reducer, order.is_early);
  decode_grid(scope, order.is_early);
  write_body(scope, scope.points().body);
  if (reducer) end_own(scope, *reducer);
  scope.out.close();
  text.shared_bytes = static_cast<int>(scope.shared_bytes);
  text.body = params_struct(text, scope.globals) + scope.out.take();
  return text;
}

}  // namespace nautilus::emit
