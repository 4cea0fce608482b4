// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/stride_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/facts/term_tests.h"
#include "spec/facts/values.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// Terms exist where `(axis + rest) % modulus == 0`.
struct Stride {
  size_t axis = 0;
  Expr rest;
  int64_t modulus = 0;
};

class StrideSums {
 public:
  StrideSums(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        facts_(ir::facts_of(program, pool)),
        values_(program, pool, equations_),
        unrolled_(ir::target_of(program).points.unrolled) {}

  Let equation(const Let& let) {
    axes_ = all_axes(let, pool_);
    equations_.emplace(let.name, let);
    return map_body(let, pool_, [&](Expr r) {
      while (const auto next = thinned(let, r)) r = *next;
      return r;
    });
  }

 private:
  // The sum over the places that have terms, of the first axis that allows it.
  std::optional<Expr> thinned(const Let& let, Expr r) {
    const bool is_sum = r.op() == Op::Reduce && r.reducer() == expr::Reducer::Sum && !r.init() &&
                        expr::is_float(r.dtype()) && !expr::has_reduce(r.body());
    if (!is_sum || algebra::is_contraction(algebra::factors(r.body()), result_axes(let, pool_)))
      return std::nullopt;
    if (!are_others_finite(r.body())) return std::nullopt;
    for (Expr test : term_tests(r.body())) {
      const auto stride = stride_of(residue_test(test), r);
      if (!stride) continue;
      const Expr out = with_places(let, r, *stride);
      // A test that is not known to hold would be asked again.
      const std::vector<Expr> left = term_tests(out.body());
      const bool is_gone = std::none_of(left.begin(), left.end(), [&](Expr t) {
        return residue_test(t).number && expr::depends_on(t, out.axis(stride->axis));
      });
      if (is_gone) return out;
    }
    return std::nullopt;
  }

  // Whether a term is 0 where a factor is: a factor that is not finite makes it NaN.
  bool are_others_finite(Expr term) {
    const std::vector<Expr> list = algebra::factors(term);
    return std::all_of(list.begin(), list.end(),
                       [&](Expr f) { return list.size() == 1 || values_.is_finite(f); });
  }

  std::optional<Stride> stride_of(const ResidueTest& test, Expr r) const {
    const auto p = test.number ? expr::Poly::of(test.number) : std::nullopt;
    for (size_t k = 0; p && k < r.axis_count(); ++k) {
      const Expr extent = r.extent(k);
      if (extent.op() == Op::IntConst && extent.integer() <= unrolled_) continue;
      const auto parts = p->split(r.axis(k));
      const auto factor = parts ? parts->first.constant() : std::nullopt;
      if (!factor || *factor * *factor != 1) continue;
      const auto rest = *factor == 1 ? parts->second : expr::negated(parts->second);
      // A quotient or an element may be there only where a condition holds.
      const bool is_plain =
          rest && std::ranges::all_of(rest->atoms(), [](Expr a) { return a.op() == Op::Var; });
      if (is_plain) return Stride{k, expr::to_expr(pool_, *rest), test.modulus};
    }
    return std::nullopt;
  }

  // The sum with `axis = modulus * (first + step) - rest`, where `first` is the first place that is
  // not in front of the axis.
  Expr with_places(const Let& let, Expr r, const Stride& s) {
    const auto number = [&](int64_t n) { return pool_.integer(n); };
    const Expr axis = r.axis(s.axis);
    std::string name = fmt::format("{}.step", axis.name().str());
    while (axes_.contains(pool_.index(name))) name += "_";
    const Expr step = pool_.index(name);
    axes_.insert(step);
    const auto up = [&](Expr e) {
      return pool_.binary(Op::FloorDiv, pool_.binary(Op::Add, e, number(s.modulus - 1)),
                          number(s.modulus));
    };
    const Expr place = pool_.binary(Op::Add, up(s.rest), step);
    const Expr at = expr::canonical_index(
        pool_, pool_.binary(Op::Sub, pool_.binary(Op::Mul, place, number(s.modulus)), s.rest));
    const Expr term = divided(expr::substitute(pool_, r.body(), {{axis, at}}));
    const Expr body = pool_.select(pool_.binary(Op::Lt, at, r.extent(s.axis)), term,
                                   pool_.constant(0, r.dtype()));
    std::vector<Expr> axes;
    std::vector<Expr> extents;
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    for (size_t k = 0; k < r.axis_count(); ++k) {
      axes.push_back(k == s.axis ? step : r.axis(k));
      extents.push_back(k == s.axis ? up(r.extent(k)) : r.extent(k));
      facts.add_axis(axes.back(), extents.back());
    }
    expr::Simplifier simplifier(pool_);
    for (Expr& e : extents) e = simplifier.simplify(e, &facts);
    return pool_.reduce(expr::Reducer::Sum, simplifier.simplify(body, &facts), axes, extents);
  }

  // With the quotients and remainders of numbers of which only a constant may not divide.
  Expr divided(Expr e) {
    return expr::rebuild(pool_, e, [&](Expr x) {
      const bool is_quotient = x.op() == Op::FloorDiv;
      if ((!is_quotient && x.op() != Op::Mod) || x[1].op() != Op::IntConst || x[1].integer() < 1)
        return x;
      const auto number = expr::Poly::of(x[0]);
      const auto quotient = number ? expr::divide(*number, x[1].integer()) : std::nullopt;
      if (!quotient) return x;
      if (is_quotient) return expr::to_expr(pool_, *quotient);
      const auto rest = expr::add(*number, *quotient, -x[1].integer());
      return rest ? expr::to_expr(pool_, *rest) : x;
    });
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  Equations equations_;
  KnownValues values_;
  int64_t unrolled_;
  std::unordered_set<Expr> axes_;
};

}  // namespace

std::optional<ir::Program> stride_sums(const ir::Program& program, ir::PassContext& context) {
  StrideSums sums(program, context.pool);
  return map_equations(program, [&](const Let& let) { return std::optional(sums.equation(let)); });
}

}  // namespace nautilus::spec
