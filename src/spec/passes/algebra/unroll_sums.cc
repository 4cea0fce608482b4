// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/unroll_sums.h"

#include "algebra/contraction.h"
#include "expr/rules/simplify.h"
#include "ir/target_of.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class Unroller {
 public:
  Unroller(const Let& let, int64_t most_points, expr::ExprPool& pool)
      : most_points_(most_points), pool_(pool), simplifier_(pool), axes_(result_axes(let, pool)) {}

  Expr run(Expr r) {
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || r.axis_count() < 2 ||
        r.init() || expr::has_reduce(r.body()) || !is_product(r.body()))
      return r;
    // The longest axis stays; one of unknown extent is long.
    size_t kept = 0;
    for (size_t k = 1; k < r.axis_count(); ++k) {
      if (extent(r, k) > extent(r, kept)) kept = k;
    }
    int64_t points = 1;
    for (size_t k = 0; k < r.axis_count(); ++k) {
      if (k == kept) continue;
      if (extent(r, k) > most_points_ || extent(r, k) < 1) return r;
      points *= extent(r, k);
    }
    if (points > most_points_) return r;
    Expr sum;
    for (int64_t point = 0; point < points; ++point) {
      expr::Substitution at;
      int64_t rest = point;
      for (size_t k = r.axis_count(); k-- > 0;) {
        if (k == kept) continue;
        at.emplace(r.axis(k), pool_.integer(rest % extent(r, k)));
        rest /= extent(r, k);
      }
      const Expr body = simplifier_.simplify(expr::substitute(pool_, r.body(), at));
      const Expr axes[] = {r.axis(kept)};
      const Expr extents[] = {r.extent(kept)};
      const Expr part = pool_.reduce(r.reducer(), body, axes, extents);
      sum = sum ? pool_.binary(Op::Add, sum, part) : part;
    }
    return sum;
  }

 private:
  static int64_t extent(Expr r, size_t k) {
    const Expr e = r.extent(k);
    return e.op() == Op::IntConst ? e.integer() : INT64_MAX;
  }

  bool is_product(Expr body) {
    return expr::is_float(body.dtype()) && algebra::is_contraction(algebra::factors(body), axes_);
  }

  int64_t most_points_;  // each has an accumulator of its own
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  std::vector<Expr> axes_;
};

}  // namespace

std::optional<ir::Program> unroll_sums(const ir::Program& program, ir::PassContext& context) {
  const int64_t points = ir::target_of(program).algebra.unrolled_points;
  return map_equations(program, [&](const Let& let) {
    Unroller unroller(let, points, context.pool);
    return map_body(let, context.pool, [&](Expr e) { return unroller.run(e); });
  });
}

}  // namespace nautilus::spec
