// SPDX-License-Identifier: Apache-2.0
#include "vrtile/live_range.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "vrtile/conditions.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using expr::Poly;
using ir::Op;
using EK = expr::Op;

class RangeFinder {
 public:
  RangeFinder(const For& loop, expr::ExprPool& pool) : pool_(pool), var_(pool.index(loop.var)) {
    for (const Op& op : loop.body) {
      expr::for_each(value_of(op), [&](Expr x) {
        if (x.op() != EK::Select) return;
        for (Expr c : conjuncts(x[0])) {
          if (expr::depends_on(c, var_)) push(candidates_, c);
        }
      });
    }
    // A conjunct must hold wherever it occurs: elsewhere the same axis may be longer.
    for (Expr c : candidates_) {
      Bounds bounds;
      bool is_linear = true;
      for (const Op& op : loop.body) {
        expr::for_each(value_of(op), [&](Expr x) {
          if (x == c) is_linear &= add(c, axes_of(op), bounds);
        });
      }
      if (!is_linear) continue;
      for (const auto& [list, bound] : bounds) push(*list, bound);
      range_.holding.push_back(c);
    }
  }

  const LiveRange& range() const { return range_; }

 private:
  // The expressions that are simplified in live steps; a constant for other ops.
  Expr value_of(const Op& op) {
    if (const auto* s = op.get<Set>()) return s->value;
    if (const auto* r = op.get<Reduce>()) return r->value;
    return pool_.integer(0);
  }

  static ir::Axes axes_of(const Op& op) {
    if (const auto* s = op.get<Set>()) return s->axes;
    const auto& r = op.as<Reduce>();
    ir::Axes axes = r.axes;
    for (size_t k = 0; k < r.value.axis_count(); ++k)
      axes.push_back({r.value.axis(k).name(), r.value.extent(k)});
    return axes;
  }

  using Bounds = std::vector<std::pair<std::vector<Expr>*, Expr>>;

  // The bounds within which the condition holds at all points of the axes; false if there are none.
  bool add(Expr condition, const ir::Axes& axes, Bounds& bounds) {
    if (condition.op() != EK::Or) return add_comparison(condition, axes, bounds);
    // It holds where one of its sides does.
    for (Expr side : condition.args()) {
      Bounds own;
      bool ok = true;
      for (Expr c : conjuncts(side)) ok = ok && add_comparison(c, axes, own);
      if (!ok) continue;
      bounds.insert(bounds.end(), own.begin(), own.end());
      return true;
    }
    return false;
  }

  bool add_comparison(Expr condition, const ir::Axes& axes, Bounds& bounds) {
    const auto p = as_nonnegative(condition);
    const auto parts = p ? p->split(var_) : std::nullopt;
    const auto slope = parts ? parts->first.constant() : std::nullopt;
    if (!slope || *slope == 0) return false;
    const auto least = least_value(parts->second, axes);
    if (!least) return false;
    // slope * var + least >= 0
    if (*slope < 0) {
      bounds.emplace_back(&range_.to, divided(expr::to_expr(pool_, *least), -*slope));
      return true;
    }
    const auto top = expr::negated(*least);
    const auto up = top ? expr::plus(*top, *slope - 1) : std::nullopt;
    if (!up) return false;
    bounds.emplace_back(&range_.from, divided(expr::to_expr(pool_, *up), *slope));
    return true;
  }

  static void push(std::vector<Expr>& list, Expr e) {
    if (std::find(list.begin(), list.end(), e) == list.end()) list.push_back(e);
  }

  Expr divided(Expr e, int64_t by) {
    return by == 1 ? e : pool_.binary(EK::FloorDiv, e, pool_.integer(by));
  }

  // The least value over all points of the axes; the rest of the polynomial stays unchanged.
  std::optional<Poly> least_value(const Poly& p, const ir::Axes& axes) {
    Poly out;
    for (const auto& [monomial, factor] : p.terms()) {
      const ir::Axis* found = nullptr;
      for (const ir::Axis& a : axes) {
        for (Expr atom : monomial) {
          if (!expr::depends_on(atom, pool_.index(a.name))) continue;
          if (monomial.size() != 1 || atom != pool_.index(a.name)) return std::nullopt;
          found = &a;
        }
      }
      for (Expr atom : monomial) {
        if (expr::depends_on(atom, var_) || !expr::tensors_read(atom).empty()) return std::nullopt;
      }
      if (!found) {
        if (!out.add(monomial, factor)) return std::nullopt;
      } else if (factor < 0) {
        if (!out.add({}, factor * (found->extent.integer() - 1))) return std::nullopt;
      }
    }
    return out;
  }

  expr::ExprPool& pool_;
  Expr var_;
  std::vector<Expr> candidates_;
  LiveRange range_;
};

}  // namespace

LiveRange live_range(const For& loop, expr::ExprPool& pool) {
  return RangeFinder(loop, pool).range();
}

}  // namespace nautilus::vrtile
