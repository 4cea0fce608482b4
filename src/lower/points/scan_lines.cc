// SPDX-License-Identifier: Apache-2.0
#include "lower/points/scan_lines.h"

#include <optional>
#include <vector>

#include "expr/bounds/affine.h"
#include "expr/bounds/at_most_zero.h"
#include "expr/combination.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "matile/point_layout.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// A scan whose steps only combine the state with a term. It points into the kernel it was found in.
struct WalkedScan {
  ir::Name state;
  DType dtype = DType::F32;
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr first;  // before the first step
  Expr term;
  const matile::Loop* loop = nullptr;
  Expr value;                         // of the step
  std::vector<matile::Write> writes;  // of what follows from it

  bool is_up() const { return loop->direction == matile::Direction::Up; }
  // How many steps there are.
  Expr count(expr::ExprPool& pool) const {
    if (is_up()) return loop->to;
    return expr::canonical_index(pool, pool.binary(EK::Add, loop->from, pool.integer(1)));
  }
};

// Whether the condition says that the step is not the first one.
bool is_later(Expr condition, const matile::Loop& loop, expr::ExprPool& pool) {
  const Expr t = pool.index(loop.var);
  const bool is_up = loop.direction == matile::Direction::Up;
  const Expr later = is_up ? pool.binary(EK::Gt, t, loop.from) : pool.binary(EK::Lt, t, loop.from);
  const auto own = expr::at_most_zero(condition);
  return own && own == expr::at_most_zero(later);
}

// What a step writes, in terms of its value; nothing if it does something else, or if its steps do
// not lie along memory: then neighbouring threads do.
std::optional<std::vector<matile::Write>> writes_of(const matile::Loop& loop,
                                                    expr::ExprPool& pool) {
  const Expr t = pool.index(loop.var);
  expr::Substitution known;
  std::vector<matile::Write> out;
  for (size_t k = 1; k + 1 < loop.body.size(); ++k) {
    if (const auto* l = loop.body[k].get<matile::Let>()) {
      known.emplace(pool.var(l->name, l->value.dtype()), expr::substitute(pool, l->value, known));
      continue;
    }
    const auto* w = loop.body[k].get<matile::Write>();
    if (!w || w->indices.empty() || w->indices.back() != t) return std::nullopt;
    out.push_back({w->target, w->indices, expr::substitute(pool, w->value, known)});
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

// Nothing if the kernel is anything else.
std::optional<WalkedScan> walked_scan(const matile::Kernel& kernel, expr::ExprPool& pool) {
  const matile::Points& points = matile::points_of(kernel);
  if (matile::point_layout(kernel).lanes || points.body.size() != 2) return std::nullopt;
  const auto* before = points.body[0].get<matile::Value>();
  const auto* loop = points.body[1].get<matile::Loop>();
  if (!before || !loop || loop->body.size() < 3) return std::nullopt;
  const auto* step = loop->body.front().get<matile::Let>();
  const auto* next = loop->body.back().get<matile::Assign>();
  if (!step || !next || next->name != before->name) return std::nullopt;
  const Expr value = pool.var(step->name, step->value.dtype());
  if (next->value != value || value.dtype() != before->dtype) return std::nullopt;
  const auto writes = writes_of(*loop, pool);
  if (!writes) return std::nullopt;
  const Expr t = pool.index(loop->var);
  const Expr state = pool.var(before->name, before->dtype);
  const auto both = expr::combination_of(step->value, pool);
  if (!both || before->dtype == DType::Bool) return std::nullopt;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const Expr last = both->operands[k];
    const Expr term = both->operands[1 - k];
    if (last.op() != EK::Select || last[1] != state || !is_later(last[0], *loop, pool)) continue;
    if (expr::depends_on(term, state) || expr::depends_on(last[2], t)) continue;
    return WalkedScan{before->name, before->dtype, both->reducer, last[2],
                      term,         loop,          value,         *writes};
  }
  return std::nullopt;
}

// The walk instead of the loop, with so many lanes for a point.
void put_walk(LoweredKernel& parts, ir::Block body, int64_t lanes, int64_t threads,
              expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::Points points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  points.body = std::move(body);
  layout.lanes = lanes;
  Expr rows;
  for (const ir::Axis& a : points.axes) {
    const Expr n = a.extent.op() == EK::IntConst || a.extent.op() == EK::Var
                       ? a.extent
                       : pool.binary(EK::Max, a.extent, pool.integer(0));
    rows = rows ? pool.binary(EK::Mul, rows, n) : n;
  }
  const int64_t each = threads / lanes;  // points of a CTA
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = each == 1 ? rows
                : rows.op() == EK::IntConst
                    ? pool.integer((rows.integer() + each - 1) / each)
                    : pool.binary(EK::FloorDiv, pool.binary(EK::Add, rows, pool.integer(each - 1)),
                                  pool.integer(each));
  matile::set_points(kernel, std::move(points));
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
}

// The term one step on, if it is that of the step before and none in the first step; else null.
Expr term_before(const WalkedScan& scan, Expr none,
                 const std::map<std::string, ir::TensorType>& buffers, expr::ExprPool& pool) {
  if (scan.term.op() != EK::Select || scan.term[2] != none) return {};
  if (!is_later(scan.term[0], *scan.loop, pool)) return {};
  const Expr t = pool.index(scan.loop->var);
  const Expr next = pool.binary(EK::Add, t, pool.integer(scan.is_up() ? 1 : -1));
  const Expr count = scan.count(pool);
  bool is_there = true;
  const Expr out =
      expr::rebuild(pool, expr::substitute(pool, scan.term[1], {{t, next}}), [&](Expr e) {
        if (e.op() != EK::Read || !expr::depends_on(e, t)) return e;
        const auto type = buffers.find(std::string(e.name().str()));
        std::vector<Expr> indices;
        for (size_t k = 0; k < e.args().size(); ++k) {
          indices.push_back(expr::depends_on(e[k], t) ? expr::canonical_index(pool, e[k]) : e[k]);
          // In the last step it is an element that the term itself never needed.
          is_there &= !expr::depends_on(e[k], t) || (indices.back() == t && type != buffers.end() &&
                                                     type->second.dims[k] == count);
        }
        return pool.read(e.name(), e.dtype(), indices);
      });
  return is_there ? out : Expr();
}

// The value with elements along the steps, which it reads in any case, as values of the walk.
Expr read_before(Expr value, Expr t, FreshNames& names, matile::LaneLoop& walk,
                 expr::ExprPool& pool) {
  expr::Substitution known;
  const auto look = [&](const auto& self, Expr e) -> void {
    if (e.op() == EK::Read && !e.args().empty() && e.args().back() == t && !known.contains(e)) {
      const DType dtype = expr::compute_dtype(e.dtype());
      const ir::Name name = names.make(std::string(e.name().str()) + "_lane");
      walk.body.insert(walk.body.begin(),
                       ir::make(matile::Value{name, dtype, pool.cast(dtype, e)}));
      known.emplace(e, pool.cast(e.dtype(), pool.var(name, dtype)));
      return;
    }
    const bool is_lazy = e.op() == EK::Select || e.op() == EK::And || e.op() == EK::Or;
    for (size_t k = 0; k < e.args().size() && !(is_lazy && k > 0); ++k) self(self, e[k]);
  };
  look(look, value);
  return expr::substitute(pool, value, known);
}

}  // namespace

bool walk_in_lines(LoweredKernel& parts, const ScanLines& lines, int64_t threads,
                   const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
                   expr::ExprPool& pool) {
  const auto scan = walked_scan(parts.kernel.as<matile::Kernel>(), pool);
  if (!scan) return false;
  const expr::Value v = expr::identity(scan->reducer, scan->dtype);
  const Expr none =
      is_float(scan->dtype) ? pool.floating(v.f, scan->dtype) : pool.integer(v.i, scan->dtype);
  const Expr before = term_before(*scan, none, buffers, pool);
  const EK combine = expr::combiner(scan->reducer);
  const std::string stem(scan->writes[0].target.str());
  const Expr carry = pool.var(names.make(stem + "_carry"), scan->dtype);
  const Expr own = pool.var(names.make(stem + "_lane"), scan->dtype);
  const Expr all = pool.var(names.make(stem + "_all"), scan->dtype);
  matile::LaneLoop walk{
      scan->loop->var,   scan->is_up() ? matile::WalkOrder::Up : matile::WalkOrder::Down,
      scan->count(pool), lines.each,
      lines.vector,      {}};
  walk.body.push_back(
      ir::make(matile::Value{own.name(), scan->dtype, before ? before : scan->term}));
  walk.body.push_back(ir::make(matile::Value{all.name(), scan->dtype, none}));
  walk.body.push_back(
      ir::make(matile::LaneScan{own.name(), scan->reducer, all.name(),
                                before ? matile::ScanReach::Before : matile::ScanReach::Upto}));
  // What writes read is loaded with the terms: vectors, under way while the round before is
  // scanned.
  const Expr value = pool.binary(combine, carry, own);
  for (const matile::Write& w : scan->writes) {
    const Expr with_reads = read_before(w.value, pool.index(scan->loop->var), names, walk, pool);
    walk.body.push_back(ir::make(matile::Write{
        w.target, w.indices, expr::substitute(pool, with_reads, {{scan->value, value}})}));
  }
  walk.body.push_back(ir::make(matile::Assign{carry.name(), pool.binary(combine, carry, all)}));
  ir::Block body;
  body.push_back(ir::make(matile::Value{carry.name(), scan->dtype, scan->first}));
  body.push_back(ir::make(std::move(walk)));
  put_walk(parts, std::move(body), lines.lanes, threads, pool);
  return true;
}

}  // namespace nautilus::lower
