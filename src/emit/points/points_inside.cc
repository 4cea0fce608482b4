// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_inside.h"

#include <algorithm>

#include "emit/identifier.h"
#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using EK = expr::Op;
using Ranges = std::vector<std::pair<Expr, int64_t>>;  // variables, with how many values they have

// A comparison at the worst values of variables that run from 0, or null.
// `own`: how far the points of a thread lie from its first one, along their axes.
Expr at_worst(Expr comparison, const Ranges& ranges, const Ranges& own, expr::ExprPool& pool) {
  const bool is_less = comparison.op() == EK::Lt || comparison.op() == EK::Le;
  const bool is_strict = comparison.op() == EK::Lt || comparison.op() == EK::Gt;
  if (!is_less && comparison.op() != EK::Gt && comparison.op() != EK::Ge) return {};
  if (comparison[0].dtype() != expr::DType::I64) return {};
  auto most = expr::difference(comparison[is_less ? 0 : 1], comparison[is_less ? 1 : 0]);
  const auto put = [&](Expr var, int64_t highest, bool stays) {
    if (!most) return;
    const auto parts = most->split(var);
    const auto slope = parts ? parts->first.constant() : std::nullopt;
    if (!slope) {
      most.reset();
      return;
    }
    const int64_t added = *slope > 0 ? *slope * highest : 0;
    most = expr::plus(stays ? *most : parts->second, added);
  };
  for (const auto& [var, turns] : ranges) put(var, turns - 1, false);
  for (const auto& [axis, farthest] : own) {
    if (farthest > 0) put(axis, farthest, true);
  }
  if (!most) return {};
  return pool.binary(is_strict ? EK::Lt : EK::Le, expr::to_expr(pool, *most), pool.integer(0));
}

class ConditionCollector {
 public:
  ConditionCollector(PointsScope& scope, const ir::Block& body) : scope_(scope) {
    collect_names(body);
    collect(body, {});
  }

 private:
  // Names that a statement gives are not known before it.
  void collect_names(const ir::Block& body) {
    for (const ir::Op& op : body) {
      if (const auto* v = op.get<matile::Value>()) own_.emplace(v->name.str());
      if (const auto* l = op.get<matile::Let>()) own_.emplace(l->name.str());
      if (const auto* s = op.get<matile::SharedLoop>()) own_.emplace(s->var.str());
      if (const auto* w = op.get<matile::LaneLoop>()) own_.emplace(w->var.str());
      if (const auto* l = op.get<matile::Loop>()) {
        if (matile::known_turns(*l) == 0) own_.emplace(l->var.str());
        collect_names(l->body);
      }
    }
  }

  void collect(const ir::Block& body, const Ranges& ranges) {
    for (const ir::Op& op : body) {
      if (const auto* l = op.get<matile::Loop>()) {
        Ranges deeper = ranges;
        if (const int64_t turns = matile::known_turns(*l))
          deeper.emplace_back(scope_.pool.index(l->var), turns);
        collect(l->body, deeper);
        continue;
      }
      // Outside of loops of known turns there is nothing to share.
      if (ranges.empty() || !op.is<matile::Assign>()) continue;
      expr::for_each(op.as<matile::Assign>().value, [&](Expr e) {
        if (e.op() == EK::Select) add(e, ranges);
      });
    }
  }

  void add(Expr guarded, const Ranges& ranges) {
    const PointsGrid& grid = scope_.grid;
    InsideConditions& inside = scope_.inside;
    const Expr condition = guarded[0];
    if (inside.holds.contains(condition)) return;
    // Where a row has few threads, one of a warp in two is at its end: what is asked of columns
    // stays with the loads, and a warp is inside or it is not.
    const bool may_stay = grid.spread > 0 && grid.points_per_thread == 1 && grid.across &&
                          matile::is_load_where(guarded);
    std::vector<Expr> asked;
    Expr left;
    for (Expr part : expr::conjuncts(condition)) {
      if (may_stay && expr::depends_on(part, grid.last)) {
        left = left ? scope_.pool.binary(EK::And, left, part) : part;
        continue;
      }
      const Expr worst = worst_of(part, ranges);
      if (!worst) return;
      asked.push_back(worst);
    }
    if (asked.empty()) return;
    inside.holds.insert(condition);
    if (left) inside.left.emplace(condition, left);
    for (Expr a : asked) {
      if (std::ranges::find(inside.asked, a) == inside.asked.end()) inside.asked.push_back(a);
    }
  }

  // A condition for all points of the thread and all turns; null if that cannot be said.
  Expr worst_of(Expr condition, const Ranges& ranges) {
    const PointsGrid& grid = scope_.grid;
    const bool is_known = expr::tensors_read(condition).empty() &&
                          std::ranges::none_of(expr::free_vars(condition), [&](Expr v) {
                            return own_.contains(v.name().str());
                          });
    if (!is_known) return {};
    Ranges own = {{grid.last, (grid.points_per_thread - 1) * grid.distance()}};
    if (grid.spread > 0 && grid.across) own.emplace_back(grid.across, grid.points_across - 1);
    return at_worst(condition, ranges, own, scope_.pool);
  }

  PointsScope& scope_;
  NameSet own_;  // names of the body whose values differ by turns
};

}  // namespace

void collect_conditions(PointsScope& scope, const ir::Block& body) {
  ConditionCollector(scope, body);
}

std::string are_inside(PointsScope& scope) {
  const PointsGrid& grid = scope.grid;
  std::string all;
  const auto add = [&](const std::string& one) { all += (all.empty() ? "" : " && ") + one; };
  for (Expr a : scope.inside.asked) add(scope.text(a));
  const bool has_line = grid.is_line || (grid.spread > 0 && grid.points_per_thread > 1);
  if (has_line) add(fmt::format("exist == {}", grid.points_per_thread));
  if (grid.spread > 0 && grid.points_across > 1)
    add(fmt::format("exist_across == {}", grid.points_across));
  return all;
}

bool holds_inside(const PointsScope& scope, Expr e) {
  return e.op() == EK::Select && scope.inside.holds.contains(e[0]);
}

Expr element_inside(PointsScope& scope, Expr guarded) {
  const auto it = scope.inside.left.find(guarded[0]);
  return it == scope.inside.left.end() ? guarded[1]
                                       : scope.pool.select(it->second, guarded[1], guarded[2]);
}

std::string load_where(PointsScope& scope, Expr e, const std::string& at) {
  const Expr read = e[1].op() == EK::Cast ? e[1][0] : e[1];
  // All parts are asked: a branch costs more than they do.
  std::string all;
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : " & ") + part; };
  const bool may_miss = scope.mode.is_near && scope.mode.are_whole;
  if (may_miss && scope.grid.points_across > 1) add("(over < exist_across)");
  if (may_miss && scope.grid.points_per_thread > 1) add("(beside < exist)");
  const bool reads = !expr::tensors_read(e[0]).empty();  // what is read may be nowhere else
  for (Expr part : reads ? std::vector<Expr>{e[0]} : expr::conjuncts(e[0]))
    add("(" + scope.text(part) + ")");
  return fmt::format("load_{}_where({}, p.{}, {}, {})", expr::name(read.dtype()), all,
                     identifier(read.name().str()),
                     at.empty() ? scope.offset(read.name(), read.args()) : at, scope.text(e[2]));
}

bool is_guarded_always(Expr e) {
  if (matile::is_load_where(e)) return is_guarded_always(e[0]);
  return e.op() != EK::Read &&
         std::ranges::all_of(e.args(), [](Expr a) { return is_guarded_always(a); });
}

}  // namespace nautilus::emit
