// SPDX-License-Identifier: Apache-2.0
#include "lower/points/scan_lanes.h"

#include <fmt/format.h>

#include "expr/bounds/at_most_zero.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

struct WalkedScan {
  ir::Name state;
  DType dtype = DType::F32;
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr first;  // before the first step
  Expr term;
  const matile::Loop* loop = nullptr;
  const matile::Write* write = nullptr;
};

std::optional<expr::Reducer> scanned_by(EK op) {
  for (const auto r :
       {expr::Reducer::Sum, expr::Reducer::Prod, expr::Reducer::Max, expr::Reducer::Min}) {
    if (expr::combiner(r) == op) return r;
  }
  return std::nullopt;
}

// Whether the condition says that the step is not the first one.
bool is_later(Expr condition, const matile::Loop& loop, expr::ExprPool& pool) {
  const Expr t = pool.index(loop.var);
  const bool is_up = loop.direction == matile::Direction::Up;
  const Expr later = is_up ? pool.binary(EK::Gt, t, loop.from) : pool.binary(EK::Lt, t, loop.from);
  const auto own = expr::at_most_zero(condition);
  return own && own == expr::at_most_zero(later);
}

std::optional<WalkedScan> walked_scan(const matile::Points& points, expr::ExprPool& pool) {
  if (points.lanes_per_point || points.body.size() != 2) return std::nullopt;
  const auto* before = points.body[0].get<matile::Value>();
  const auto* loop = points.body[1].get<matile::Loop>();
  if (!before || !loop || loop->body.size() != 3) return std::nullopt;
  const auto* step = loop->body[0].get<matile::Let>();
  const auto* write = loop->body[1].get<matile::Write>();
  const auto* next = loop->body[2].get<matile::Assign>();
  if (!step || !write || !next || next->name != before->name) return std::nullopt;
  const Expr value = pool.var(step->name, step->value.dtype());
  if (next->value != value || write->value != value || value.dtype() != before->dtype)
    return std::nullopt;
  const Expr t = pool.index(loop->var);
  if (write->indices.empty() || write->indices.back() != t) return std::nullopt;
  const Expr state = pool.var(before->name, before->dtype);
  const auto reducer = step->value.args().size() == 2 ? scanned_by(step->value.op()) : std::nullopt;
  if (!reducer || before->dtype == DType::Bool) return std::nullopt;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const Expr last = step->value[k];
    const Expr term = step->value[1 - k];
    if (last.op() != EK::Select || last[1] != state || !is_later(last[0], *loop, pool)) continue;
    if (expr::depends_on(term, state) || expr::depends_on(last[2], t)) continue;
    return WalkedScan{before->name, before->dtype, *reducer, last[2], term, loop, write};
  }
  return std::nullopt;
}

Expr number(expr::Value v, DType dtype, expr::ExprPool& pool) {
  return is_float(dtype) ? pool.floating(v.f, dtype) : pool.integer(v.i, dtype);
}

}  // namespace

bool walk_together(LoweredKernel& parts, int64_t lanes, int64_t threads, FreshNames& names,
                   expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto points = kernel.body[0].as<matile::Points>();
  const auto scan = walked_scan(points, pool);
  if (!scan) return false;
  const matile::Loop& loop = *scan->loop;
  const bool is_up = loop.direction == matile::Direction::Up;
  const Expr t = pool.index(loop.var);
  const Expr count =
      is_up ? loop.to
            : expr::canonical_index(pool, pool.binary(EK::Add, loop.from, pool.integer(1)));
  const Expr exists =
      is_up ? pool.binary(EK::Lt, t, count) : pool.binary(EK::Ge, t, pool.integer(0));
  const EK combine = expr::combiner(scan->reducer);
  const std::string stem(scan->write->target.str());
  const Expr carry = pool.var(names.make(stem + "_carry"), scan->dtype);
  const Expr own = pool.var(names.make(stem + "_lane"), scan->dtype);
  const Expr all = pool.var(names.make(stem + "_all"), scan->dtype);
  const Expr none = number(expr::identity(scan->reducer, scan->dtype), scan->dtype, pool);
  matile::LaneLoop walk{
      loop.var, is_up ? matile::WalkOrder::Up : matile::WalkOrder::Down, count, {}};
  walk.body.push_back(
      ir::make(matile::Value{own.name(), scan->dtype, pool.select(exists, scan->term, none)}));
  walk.body.push_back(ir::make(matile::Value{all.name(), scan->dtype, none}));
  walk.body.push_back(ir::make(matile::LaneScan{own.name(), scan->reducer, all.name()}));
  matile::If there{exists, {}};
  there.body.push_back(ir::make(
      matile::Write{scan->write->target, scan->write->indices, pool.binary(combine, carry, own)}));
  walk.body.push_back(ir::make(std::move(there)));
  walk.body.push_back(ir::make(matile::Assign{carry.name(), pool.binary(combine, carry, all)}));
  ir::Block body;
  body.push_back(ir::make(matile::Value{carry.name(), scan->dtype, scan->first}));
  body.push_back(ir::make(std::move(walk)));
  points.body = std::move(body);
  points.lanes_per_point = lanes;
  Expr rows;
  for (const ir::Axis& a : points.axes) {
    const Expr n = a.extent.op() == EK::IntConst || a.extent.op() == EK::Var
                       ? a.extent
                       : pool.binary(EK::Max, a.extent, pool.integer(0));
    rows = rows ? pool.binary(EK::Mul, rows, n) : n;
  }
  const int64_t each = threads / lanes;  // points of a CTA
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = rows.op() == EK::IntConst
                    ? pool.integer((rows.integer() + each - 1) / each)
                    : pool.binary(EK::FloorDiv, pool.binary(EK::Add, rows, pool.integer(each - 1)),
                                  pool.integer(each));
  kernel.body[0] = ir::make(std::move(points));
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

}  // namespace nautilus::lower
