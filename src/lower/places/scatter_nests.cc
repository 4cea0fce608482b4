// SPDX-License-Identifier: Apache-2.0
#include "lower/places/scatter_nests.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using expr::Reducer;
using EK = expr::Op;

// A term that counts where a condition holds.
struct Term {
  Expr condition;
  Expr value;
};

std::optional<Term> term_of(const scalar::Update& u, Expr first, expr::ExprPool& pool) {
  const Expr e = u.value;
  if (u.reducer == Reducer::Any) return Term{e, pool.boolean(true)};
  if (u.reducer == Reducer::All && e.op() == EK::Or && e[0].op() == EK::Not)
    return Term{e[0][0], e[1]};
  if (e.op() == EK::Select && expr::changes_nothing(e[2], u.reducer, first))
    return Term{e[0], e[1]};
  const bool is_flag =
      u.reducer == Reducer::Sum && e.op() == EK::Cast && e[0].dtype() == DType::Bool;
  if (is_flag) return Term{e[0], pool.constant(1, e.dtype())};
  return std::nullopt;
}

// The axis at the only place where `condition`, an equation, holds; null for other conditions.
Expr place_of(Expr condition, Expr axis, expr::ExprPool& pool) {
  if (condition.op() != EK::Eq || condition[0].dtype() != DType::I64) return {};
  const auto rest = expr::difference(condition[0], condition[1]);
  const auto parts = rest ? rest->split(axis) : std::nullopt;
  const auto factor = parts ? parts->first.constant() : std::nullopt;
  if (!factor || (*factor != 1 && *factor != -1)) return {};
  const auto place = *factor == 1 ? expr::negated(parts->second) : parts->second;
  return place ? expr::to_expr(pool, *place) : Expr();
}

bool depends_on_any(Expr e, const ir::Axes& axes, expr::ExprPool& pool) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const ir::Axis& a) { return expr::depends_on(e, pool.index(a.name)); });
}

class Scattering {
 public:
  Scattering(const ir::Axes& axes, expr::ExprPool& pool) : axes_(axes), pool_(pool) {}

  // Finds the axes that have one place. In front of the equation that gives it nothing may need the
  // place; behind it, it is in the axis.
  bool look(Expr condition) {
    for (const Expr c : expr::conjuncts(condition)) add(place(c));
    return !places_.empty() && !depends_on_any(condition_, scattered_, pool_);
  }

  Expr condition() const { return condition_; }
  Expr place(Expr e) const { return expr::substitute(pool_, e, places_); }
  bool is_scattered(const ir::Axis& axis) const { return places_.contains(pool_.index(axis.name)); }

 private:
  void add(Expr c) {
    for (const ir::Axis& a : axes_) {
      if (is_scattered(a)) continue;
      const Expr place = place_of(c, pool_.index(a.name), pool_);
      // Places that another such axis has would need its place first.
      if (!place || depends_on_any(place, scattered_, pool_)) continue;
      places_[pool_.index(a.name)] = place;
      scattered_.push_back(a);
      ask(pool_.binary(EK::Ge, place, pool_.integer(0)));
      return ask(pool_.binary(EK::Lt, place, a.extent));
    }
    ask(c);
  }

  void ask(Expr c) { condition_ = condition_ ? pool_.binary(EK::And, condition_, c) : c; }

  const ir::Axes& axes_;
  expr::ExprPool& pool_;
  expr::Substitution places_;
  ir::Axes scattered_;
  Expr condition_;
};

// Whether memory combines elements of this dtype so.
bool is_combined_by_memory(Reducer reducer, DType dtype) {
  if (expr::compute_dtype(dtype) != dtype) return false;
  return reducer != Reducer::Prod && !expr::is_arg(reducer);
}

}  // namespace

std::optional<ScatterNests> scatter_nests(const MapNest& nest,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          expr::ExprPool& pool) {
  const auto reduction = reduction_of(nest);
  if (!reduction) return std::nullopt;
  const auto& [init, loop, update] = *reduction;
  const DType dtype = buffers.at(std::string(init->target.str())).dtype;
  if (!is_combined_by_memory(update->reducer, dtype) || update->value.dtype() != dtype)
    return std::nullopt;
  const auto term = term_of(*update, init->value, pool);
  Scattering scattering(nest.axes, pool);
  if (!term || !scattering.look(term->condition)) return std::nullopt;

  ScatterNests out;
  out.first.axes = nest.axes;
  out.first.body.push_back(ir::make(scalar::Store{init->target, init->indices, init->value}));
  ir::Axes left;
  for (const ir::Axis& a : nest.axes) {
    if (!scattering.is_scattered(a)) left.push_back(a);
  }
  out.terms.axes = left;
  out.terms.axes.insert(out.terms.axes.end(), loop->axes.begin(), loop->axes.end());
  ir::Exprs places;
  for (Expr i : update->indices) places.push_back(scattering.place(i));
  out.terms.body.push_back(
      ir::make(scalar::Scatter{update->target, places, update->reducer,
                               scattering.place(term->value), scattering.condition()}));
  return out;
}

}  // namespace nautilus::lower
