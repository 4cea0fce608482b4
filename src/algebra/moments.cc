// SPDX-License-Identifier: Apache-2.0
#include "algebra/moments.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"
#include "expr/rules/simplify.h"

namespace nautilus::algebra {

using expr::Expr;
using expr::ExprPool;
using expr::Op;

namespace {

constexpr size_t kMaxDegree = 2;
constexpr uint32_t kLargestTerm = 4096;

// d e / d symbol, without simplification; null: 0.
class Derivative {
 public:
  Derivative(ExprPool& pool, Expr symbol) : pool_(pool), symbol_(symbol) {}

  Outcome<Expr> of(Expr e) {
    if (e == symbol_) return pool_.constant(1, e.dtype());
    if (!expr::depends_on(e, symbol_)) return Expr();
    switch (e.op()) {
      case Op::Neg: {
        const auto x = of(e[0]);
        return !x || !*x ? x : Outcome<Expr>(negated(*x));
      }
      case Op::Add:
      case Op::Sub: {
        const auto x = of(e[0]);
        if (!x) return x;
        const auto y = of(e[1]);
        if (!y) return y;
        return e.op() == Op::Add ? sum(*x, *y) : sum(*x, *y ? negated(*y) : Expr());
      }
      case Op::Mul: {
        const auto x = of(e[0]);
        if (!x) return x;
        const auto y = of(e[1]);
        if (!y) return y;
        return sum(*x ? product(*x, e[1]) : Expr(), *y ? product(e[0], *y) : Expr());
      }
      case Op::Div: {
        if (expr::depends_on(e[1], symbol_)) break;
        const auto x = of(e[0]);
        return !x || !*x ? x : Outcome<Expr>(pool_.binary(Op::Div, *x, e[1]));
      }
      case Op::Select: {
        if (expr::depends_on(e[0], symbol_)) break;
        const auto x = of(e[1]);
        if (!x) return x;
        const auto y = of(e[2]);
        if (!y) return y;
        if (!*x && !*y) return Expr();
        const Expr zero = pool_.constant(0, e.dtype());
        return pool_.select(e[0], *x ? *x : zero, *y ? *y : zero);
      }
      default:
        break;
    }
    return Rejection{"polynomial",
                     fmt::format("running and streamed values meet in an operator that does not "
                                 "separate: `{}`",
                                 expr::to_string(e))};
  }

 private:
  static bool is_number(Expr e) { return e.op() == Op::FloatConst; }

  // Numbers first, joined.
  Expr product(Expr a, Expr b) {
    if (is_number(b)) std::swap(a, b);
    if (is_number(a) && is_number(b)) return pool_.constant(a.number() * b.number(), a.dtype());
    if (is_number(a) && a.number() == 1) return b;
    if (is_number(a) && b.op() == Op::Mul && is_number(b[0]))
      return product(product(a, b[0]), b[1]);
    return pool_.binary(Op::Mul, a, b);
  }
  Expr negated(Expr a) { return product(pool_.constant(-1, a.dtype()), a); }
  Expr sum(Expr a, Expr b) {
    if (!a || !b) return a ? a : b;
    if (a == b) return product(pool_.constant(2, a.dtype()), a);
    return pool_.binary(Op::Add, a, b);
  }

  ExprPool& pool_;
  Expr symbol_;
};

}  // namespace

Outcome<std::vector<Moment>> moments_of(ExprPool& pool, Expr term,
                                        const std::vector<Expr>& symbols) {
  if (term.tree_size() > kLargestTerm)
    return Rejection{"size", "its terms are too large to look at"};
  std::vector<Moment> out = {{{}, term}};
  expr::Simplifier simplifier(pool);
  for (size_t k = 0; k < out.size(); ++k) {
    // Each derivative is found once, by its highest symbol last.
    for (size_t s = out[k].by.empty() ? 0 : out[k].by.back(); s < symbols.size(); ++s) {
      const auto d = Derivative(pool, symbols[s]).of(out[k].term);
      if (!d) return d.rejection();
      if (!*d) continue;
      Moment next{out[k].by, simplifier.simplify(*d)};
      next.by.push_back(s);
      if (next.by.size() > kMaxDegree)
        return Rejection{"degree",
                         "its terms are polynomials of running values of a degree above "
                         "2"};
      out.push_back(std::move(next));
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Moment& a, const Moment& b) { return a.by.size() < b.by.size(); });
  return out;
}

Expr moved_sum(ExprPool& pool, const std::vector<Moment>& moments, size_t k,
               const std::vector<Expr>& sums, const std::vector<Expr>& steps) {
  Expr result = sums[k];
  for (size_t n = 0; n < moments.size(); ++n) {
    // The symbols by which the n-th is a derivative of the k-th.
    std::vector<size_t> rest;
    const auto& by = moments[n].by;
    const auto& base = moments[k].by;
    if (n == k || !std::includes(by.begin(), by.end(), base.begin(), base.end())) continue;
    std::set_difference(by.begin(), by.end(), base.begin(), base.end(), std::back_inserter(rest));
    Expr factor;
    for (size_t i = 0; i < rest.size(); ++i) {
      const Expr d = steps[rest[i]];
      factor = factor ? pool.binary(Op::Mul, factor, d) : d;
    }
    // 1 / 2! for the square of one step.
    if (rest.size() == 2 && rest[0] == rest[1])
      factor = pool.binary(Op::Mul, factor, pool.constant(0.5, factor.dtype()));
    result = pool.binary(Op::Add, result, pool.binary(Op::Mul, factor, sums[n]));
  }
  return result;
}

}  // namespace nautilus::algebra
