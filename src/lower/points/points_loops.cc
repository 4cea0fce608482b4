// SPDX-License-Identifier: Apache-2.0
#include "lower/points/points_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/point_counts.h"
#include "lower/points/scan_lines.h"
#include "matile/point_layout.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;
using NameSet = std::unordered_set<ir::Name>;

void add_names_in(const Op& op, NameSet& out) {
  const auto of = [&](const Op& o) {
    ir::for_each_expr(o, [&](Expr e) {
      for (Expr v : expr::free_vars(e)) out.insert(v.name());
    });
  };
  of(op);
  if (const auto* l = op.get<matile::Loop>()) {
    ir::for_each_op(l->body, of);
    // What it assigns it reads.
    ir::for_each_op(l->body, [&](const Op& o) {
      if (const auto* a = o.get<matile::Assign>()) out.insert(a->name);
    });
  }
}

void add_changed(const Op& op, NameSet& out) {
  if (const auto* v = op.get<matile::Value>()) out.insert(v->name);
  if (const auto* l = op.get<matile::Let>()) out.insert(l->name);
  if (const auto* a = op.get<matile::Assign>()) out.insert(a->name);
  if (const auto* l = op.get<matile::Loop>()) {
    for (const Op& o : l->body) add_changed(o, out);
  }
  if (const auto* i = op.get<matile::If>()) {
    for (const Op& o : i->body) add_changed(o, out);
  }
}

bool meet(const NameSet& a, const NameSet& b) {
  return std::any_of(a.begin(), a.end(), [&](ir::Name n) { return b.contains(n); });
}

bool is_counted(const matile::Loop& l) {
  return l.from.is_int(0) && l.direction == matile::Direction::Up;
}

// Tries to move what the loop at `late` needs before the one at `early`, and its body into it.
bool join(ir::Block& body, size_t early, size_t late, expr::ExprPool& pool) {
  const auto& first = body[early].as<matile::Loop>();
  const auto& second = body[late].as<matile::Loop>();
  if (!is_counted(first) || !is_counted(second) || first.to != second.to) return false;
  NameSet needed;
  add_names_in(body[late], needed);
  std::vector<size_t> moved;
  for (size_t k = late; k-- > early + 1;) {
    NameSet defined;
    add_changed(body[k], defined);
    if (!meet(defined, needed)) continue;
    if (!body[k].is<matile::Value>() && !body[k].is<matile::Let>()) return false;
    add_names_in(body[k], needed);
    moved.push_back(k);
  }
  NameSet computed;
  add_changed(body[early], computed);
  if (meet(computed, needed)) return false;
  matile::Loop both = first;
  const expr::Substitution rename = {{pool.index(second.var), pool.index(first.var)}};
  for (const Op& op : second.body) {
    const auto* a = op.get<matile::Assign>();
    if (!a) return false;
    both.body.push_back(
        ir::make(matile::Assign{a->name, expr::substitute(pool, a->value, rename)}, op.span()));
  }
  ir::Block out(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(early));
  for (size_t n = moved.size(); n-- > 0;) out.push_back(body[moved[n]]);
  out.push_back(ir::make(std::move(both), body[early].span()));
  for (size_t k = early + 1; k < body.size(); ++k) {
    if (k != late && std::find(moved.begin(), moved.end(), k) == moved.end())
      out.push_back(body[k]);
  }
  body = std::move(out);
  return true;
}

// acc = acc <reducer> value, where the value needs no other number of the loop.
struct Reduction {
  ir::Name acc;
  DType dtype = DType::F32;
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr value;
};

std::optional<Reduction> reduction(const Op& op) {
  const auto* a = op.get<matile::Assign>();
  if (!a || a->value.args().size() != 2) return std::nullopt;
  const Expr own = a->value[0];
  const EK op_of = a->value.op();
  if (own.op() != EK::Var || own.name() != a->name) return std::nullopt;
  for (const auto r : {expr::Reducer::Sum, expr::Reducer::Max, expr::Reducer::Min}) {
    if (expr::combiner(r) == op_of) return Reduction{a->name, own.dtype(), r, a->value[1]};
  }
  return std::nullopt;
}

bool is_shareable(const matile::Loop& l) {
  if (!is_counted(l)) return false;
  NameSet changed;
  for (const Op& op : l.body) add_changed(op, changed);
  return std::all_of(l.body.begin(), l.body.end(), [&](const Op& op) {
    const auto r = reduction(op);
    if (!r || r->dtype == DType::Bool) return false;
    NameSet names;
    for (Expr v : expr::free_vars(r->value)) names.insert(v.name());
    return !meet(names, changed);
  });
}

Expr identity_of(expr::Reducer reducer, DType dtype, expr::ExprPool& pool) {
  const expr::Value v = expr::identity(reducer, dtype);
  return is_float(dtype) ? pool.floating(v.f, dtype) : pool.integer(v.i, dtype);
}

void share(const matile::Loop& l, FreshNames& names, expr::ExprPool& pool, ir::Block& out) {
  matile::SharedLoop shared{l.var, l.to, {}};
  ir::Block after;
  for (const Op& op : l.body) {
    const Reduction r = *reduction(op);
    const ir::Name own = names.make(fmt::format("{}_lane", r.acc.str()));
    const EK combine = expr::combiner(r.reducer);
    const Expr var = pool.var(own, r.dtype);
    out.push_back(ir::make(matile::Value{own, r.dtype, identity_of(r.reducer, r.dtype, pool)}));
    shared.body.push_back(ir::make(matile::Assign{own, pool.binary(combine, var, r.value)}));
    after.push_back(ir::make(matile::Join{own, r.reducer}));
    const Expr acc = pool.var(r.acc, r.dtype);
    after.push_back(ir::make(matile::Assign{r.acc, pool.binary(combine, acc, var)}));
  }
  out.push_back(ir::make(std::move(shared)));
  for (Op& op : after) out.push_back(std::move(op));
}

// Gives every point `lanes` lanes, if all its loops are reductions that `is_worth` wants to share.
template <typename IsWorth>
bool share_all(LoweredKernel& parts, int64_t lanes, int64_t threads, const IsWorth& is_worth,
               FreshNames& names, expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::Points points = matile::points_of(kernel);
  bool found = false;
  for (const Op& op : points.body) {
    if (op.is<matile::If>()) return false;
    const auto* l = op.get<matile::Loop>();
    if (l && !(is_shareable(*l) && is_worth(*l))) return false;
    found |= l != nullptr;
  }
  if (!found) return false;
  ir::Block body;
  for (const Op& op : points.body) {
    if (const auto* l = op.get<matile::Loop>()) {
      share(*l, names, pool, body);
    } else {
      body.push_back(op);
    }
  }
  points.body = std::move(body);
  matile::PointLayout layout = matile::point_layout(kernel);
  layout.lanes = lanes;
  const Expr count = count_of(points.axes, pool);
  matile::set_points(kernel, std::move(points));
  matile::set_point_layout(kernel, layout);
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = quotient_up(count, threads / lanes, pool);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

// Another kernel has another name.
void rename(LoweredKernel& parts, FreshNames& names) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto launch = parts.launch.as<matile::Launch>();
  kernel.name = names.make(kernel.name.str());
  launch.kernel = kernel.name;
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
}

}  // namespace

bool is_writing_loop(const Op& op) {
  const auto* l = op.get<matile::Loop>();
  bool writes = false;
  bool changes = false;
  if (l) {
    ir::for_each_op(l->body, [&](const Op& o) {
      writes |= o.is<matile::Write>();
      changes |= o.is<matile::Assign>();
    });
  }
  return writes && changes;
}

ir::Block join_loops(const ir::Block& ops, expr::ExprPool& pool) {
  ir::Block body = ops;
  for (size_t late = 1; late < body.size(); ++late) {
    for (size_t early = 0; early < late && body[late].is<matile::Loop>(); ++early) {
      if (!body[early].is<matile::Loop>() || !join(body, early, late, pool)) continue;
      late = early;  // places have changed
      break;
    }
  }
  return body;
}

bool share_lanes(LoweredKernel& parts, int64_t lanes, int64_t threads, const target::Limits& limits,
                 FreshNames& names, expr::ExprPool& pool) {
  if (lanes == limits.warp_threads && walk_in_lines(parts, {lanes, 1, 1}, threads, {}, names, pool))
    return true;
  return share_all(
      parts, lanes, threads, [](const matile::Loop&) { return true; }, names, pool);
}

bool widen(LoweredKernel& parts, int64_t each, int64_t threads, expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  bool is_plain = true;
  ir::for_each_op(points.body,
                  [&](const Op& op) { is_plain &= !op.is<matile::If>() && !is_writing_loop(op); });
  if (layout.lanes || !is_plain) return false;
  layout.each = {each, matile::LastPoints::Ragged};
  ir::Axes lines = points.axes;
  lines.back().extent = quotient_up(lines.back().extent, each, pool);
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = quotient_up(count_of(lines, pool), threads, pool);
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

bool widen_across(LoweredKernel& parts, const decision::Across& line, int64_t threads,
                  expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  const int64_t across = line.points.value_or(0);
  const int64_t lines = line.lines.value_or(0);
  const auto it = std::find_if(points.axes.begin(), points.axes.end(),
                               [&](const ir::Axis& a) { return a.name == line.axis; });
  const bool is_plain = std::all_of(points.body.begin(), points.body.end(), [](const Op& op) {
    return op.is<matile::Let>() || op.is<matile::Value>() || op.is<matile::Write>();
  });
  if (it == points.axes.end() || it + 1 == points.axes.end() || !layout.is_ragged() || !is_plain ||
      lines < 1 || threads % lines != 0)
    return false;
  layout.across = line;
  ir::Axes tiles = points.axes;
  const auto side = static_cast<size_t>(it - points.axes.begin());
  tiles.back().extent = quotient_up(tiles.back().extent, layout.neighbours() * lines, pool);
  tiles[side].extent = quotient_up(tiles[side].extent, across * (threads / lines), pool);
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = count_of(tiles, pool);
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

bool spread(LoweredKernel& parts, const decision::Spread& line, int64_t threads,
            expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  const int64_t beside = line.threads.value_or(0);
  const size_t rank = points.axes.size();
  const bool has_rows = rank > 1;
  const int64_t line_points = layout.is_ragged() ? layout.neighbours() : 1;
  if (layout.lanes || layout.across || (layout.each && !layout.is_ragged()) || beside < 1 ||
      (line_points > 1 && line.apart != 1) || threads % beside != 0 ||
      (!has_rows && (beside != threads || line.down != 1)))
    return false;
  ir::Exprs own = {pool.index(points.axes.back().name)};
  if (has_rows) own.push_back(pool.index(points.axes[rank - 2].name));
  const auto is_same = [&](Expr bound) {
    return expr::tensors_read(bound).empty() &&
           std::none_of(own.begin(), own.end(), [&](Expr v) { return expr::depends_on(bound, v); });
  };
  bool is_plain = true;
  ir::for_each_op(points.body, [&](const Op& op) {
    is_plain &= !op.is<matile::If>() && !is_writing_loop(op);
    if (const auto* v = op.get<matile::Value>()) own.push_back(pool.var(v->name, v->dtype));
    if (const auto* l = op.get<matile::Let>()) own.push_back(pool.var(l->name, l->value.dtype()));
    if (const auto* l = op.get<matile::Loop>())
      is_plain &= line_points == 1 && is_same(l->from) && is_same(l->to);
  });
  if (!is_plain) return false;
  layout.spread = line;
  ir::Axes tiles = points.axes;
  tiles.back().extent =
      quotient_up(tiles.back().extent, beside * line.apart.value_or(1) * line_points, pool);
  if (has_rows) {
    const int64_t side = threads / beside * line.down.value_or(1);
    if (side > 1) tiles[rank - 2].extent = quotient_up(tiles[rank - 2].extent, side, pool);
  }
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = count_of(tiles, pool);
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

bool hold(LoweredKernel& parts, int64_t turns) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  std::vector<Expr> bounds;
  for (const Op& op : points.body) {
    const auto* l = op.get<matile::Loop>();
    if (l && is_counted(*l) && l->to.op() != EK::IntConst) bounds.push_back(l->to);
  }
  const bool is_one =
      std::all_of(bounds.begin(), bounds.end(), [&](Expr b) { return b == bounds[0]; });
  if (layout.lanes || layout.across || layout.spread || layout.patch || bounds.size() < 2 ||
      !is_one)
    return false;
  layout.held = turns;
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  return true;
}

Expr parts_of(const LoweredKernel& one) {
  Expr count;
  const matile::Points& points = matile::points_of(one.kernel.as<matile::Kernel>());
  for (const Op& op : points.body) {
    const auto* l = op.get<matile::Loop>();
    if (!l) continue;
    if (l->to.op() != EK::Var || (count && count != l->to)) return {};
    count = l->to;
  }
  return count;
}

std::optional<LoweredKernel> share_parts(const LoweredKernel& one, int64_t lanes, int64_t threads,
                                         FreshNames& names, expr::ExprPool& pool) {
  const Expr count = parts_of(one);
  LoweredKernel shared = one;
  shared.plan.clear();
  const auto is_over_parts = [&](const matile::Loop& l) { return count && l.to == count; };
  if (!share_all(shared, lanes, threads, is_over_parts, names, pool)) return std::nullopt;
  rename(shared, names);
  return shared;
}

std::optional<LoweredKernel> widen_points(const LoweredKernel& one, int64_t each, int64_t threads,
                                          FreshNames& names, expr::ExprPool& pool) {
  LoweredKernel wide = one;
  wide.plan.clear();
  auto kernel = wide.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  const bool is_plain = std::none_of(points.body.begin(), points.body.end(),
                                     [](const Op& op) { return op.is<matile::If>(); });
  const Expr last = points.axes.back().extent;
  const bool has_rest = last.op() == EK::IntConst && last.integer() % each != 0;
  if (layout.lanes || !is_plain || has_rest) return std::nullopt;
  auto launch = wide.launch.as<matile::Launch>();
  launch.grid = quotient_up(count_of(points.axes, pool), each * threads, pool);
  layout.each = {each, matile::LastPoints::Whole};
  matile::set_point_layout(kernel, layout);
  wide.kernel = ir::make(std::move(kernel));
  wide.launch = ir::make(std::move(launch));
  rename(wide, names);
  return wide;
}

}  // namespace nautilus::lower
