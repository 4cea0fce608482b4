// SPDX-License-Identifier: Apache-2.0
#include "lower/points/point_parts.h"

#include "expr/scalar_ops.h"
#include "matile/point_layout.h"

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

ir::Op combined(Expr acc, expr::Reducer reducer, Expr value, expr::ExprPool& pool) {
  return ir::make(matile::Assign{
      acc.name(), pool.binary(expr::combiner(reducer), acc, pool.cast(acc.dtype(), value))});
}

void take_position(Expr at, Expr best, expr::Reducer reducer, const Candidate& candidate,
                   expr::ExprPool& pool, ir::Block& out) {
  const Expr number = pool.cast(best.dtype(), candidate.value);
  out.push_back(ir::make(matile::Let{candidate.name, number}));
  const Expr x = pool.var(candidate.name, number.dtype());
  const Expr is_first = pool.binary(EK::And, pool.binary(EK::Lt, at, pool.integer(0, at.dtype())),
                                    pool.binary(EK::Eq, x, x));
  const EK beats = reducer == expr::Reducer::ArgMax ? EK::Gt : EK::Lt;
  matile::If branch{pool.binary(EK::Or, is_first, pool.binary(beats, x, best)), {}};
  branch.body.push_back(ir::make(matile::Assign{best.name(), x}));
  branch.body.push_back(
      ir::make(matile::Assign{at.name(), pool.cast(at.dtype(), candidate.position)}));
  out.push_back(ir::make(std::move(branch)));
}

LoweredKernel kernel_of_points(ir::Name name, ir::Axes axes, ir::Block body, int64_t threads,
                               FreshNames& own, expr::ExprPool& pool) {
  Expr count;
  for (const ir::Axis& a : axes) {
    const Expr extent = pool.binary(EK::Max, a.extent, pool.integer(0));
    const Expr e = a.extent.op() == EK::IntConst || a.extent.op() == EK::Var ? a.extent : extent;
    count = count ? pool.binary(EK::Mul, count, e) : e;
  }
  if (axes.empty()) {
    axes.push_back({own.make("one"), pool.integer(1)});
    count = pool.integer(1);
  }
  ir::Block kernel;
  matile::Points points;
  points.axes = std::move(axes);
  points.body = std::move(body);
  kernel.push_back(ir::make(std::move(points)));
  const Expr grid =
      threads == 1 ? count
      : count.op() == EK::IntConst
          ? pool.integer((count.integer() + threads - 1) / threads)
          : pool.binary(EK::FloorDiv, pool.binary(EK::Add, count, pool.integer(threads - 1)),
                        pool.integer(threads));
  return {{},
          ir::make(matile::Kernel{.name = name, .body = std::move(kernel)}),
          ir::make(matile::Launch{name, grid})};
}

namespace {

template <class Change>
void change_layout(LoweredKernel& parts, const Change& change) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::PointLayout layout = matile::point_layout(kernel);
  change(layout);
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace

void set_threads(LoweredKernel& parts, int64_t threads, const target::Target& target) {
  change_layout(parts, [&](matile::PointLayout& layout) {
    layout.threads.reset();
    if (threads != target.points.threads) layout.threads = threads;
  });
}

void set_lanes(LoweredKernel& parts, int64_t lanes) {
  change_layout(parts, [&](matile::PointLayout& layout) { layout.lanes = lanes; });
}

void launch_where(LoweredKernel& kernel, Expr condition, expr::ExprPool& pool) {
  const auto& launch = kernel.launch.as<matile::Launch>();
  kernel.launch =
      ir::make(matile::Launch{launch.kernel, pool.select(condition, launch.grid, pool.integer(0))});
}

}  // namespace nautilus::lower
