// SPDX-License-Identifier: Apache-2.0
#include "expr/rules/simplify.h"

#include <unordered_map>

#include "base/check.h"

namespace nautilus::expr {
namespace {

Expr canonical_order(ExprPool& pool, Expr e) {
  if (!is_commutative(e.op())) return {};
  // Only constants move (to the right), and equal-weight operands keep the order they were written
  // in: readers know their own formula again, and rules need no more than that.
  if (e[0].is_const() && !e[1].is_const()) return pool.binary(e.op(), e[1], e[0]);
  return {};
}

// Simplifications of integers by bounds: comparisons, and division or remainder by more than the
// operand.
Expr by_bounds(ExprPool& pool, Expr e, const Facts& facts) {
  if (is_comparison(e.op()) && is_int(e[0].dtype())) {
    switch (facts.prove(e)) {
      case Truth::True:
        return pool.boolean(true);
      case Truth::False:
        return pool.boolean(false);
      case Truth::Unknown:
        return {};
    }
  }
  if ((e.op() == Op::FloorDiv || e.op() == Op::Mod) && e.dtype() == DType::I64) {
    const Expr zero = pool.integer(0);
    if (facts.prove(pool.binary(Op::Le, zero, e[0])) == Truth::True &&
        facts.prove(pool.binary(Op::Lt, e[0], e[1])) == Truth::True) {
      return e.op() == Op::Mod ? e[0] : zero;
    }
  }
  if ((e.op() == Op::Min || e.op() == Op::Max) && e.dtype() == DType::I64) {
    const bool is_min = e.op() == Op::Min;
    const Truth t = facts.prove(pool.binary(Op::Le, e[0], e[1]));
    if (t == Truth::True) return e[is_min ? 0 : 1];
    if (facts.prove(pool.binary(Op::Le, e[1], e[0])) == Truth::True) return e[is_min ? 1 : 0];
  }
  return {};
}

}  // namespace

Expr Simplifier::root(Expr e, const Facts* facts) {
  // Rules shrink a declared weight, so the loop ends; the bound guards against a row that breaks
  // its contract.
  for (int step = 0; step < 1000; ++step) {
    Expr next = fold(pool_, e);
    if (!next) next = canonical_order(pool_, e);
    if (!next) next = rules_.apply(e);
    if (!next && facts) next = by_bounds(pool_, e, *facts);
    if (!next && e.op() == Op::Select && e[1] == e[2]) next = e[1];
    if (!next) return e;
    if (next.args().empty()) return next;
    e = next;
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(root(a, facts));
    e = pool_.with_args(e, args);
    if (e.args().empty()) return e;
  }
  NAUT_CHECK(false, "simplification does not end");
}

Expr Simplifier::simplify(Expr e, const Facts* facts) {
  std::unordered_map<Expr, Expr> memo;
  auto go = [&](auto& self, Expr x) -> Expr {
    if (x.args().empty()) return x;
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    std::vector<Expr> args(x.args().begin(), x.args().end());
    const bool has_own_axes = x.op() == Op::Reduce && facts;
    for (size_t i = has_own_axes ? 1 : 0; i < args.size(); ++i) args[i] = self(self, args[i]);
    if (has_own_axes) {
      // Inside a reduction its axes are known to exist; outside, the range may be empty. Their
      // simplified extents tell what they will tell the next time.
      const Expr outside = pool_.with_args(x, args);
      Facts inner = *facts;
      for (size_t k = 0; k < x.axis_count(); ++k)
        inner.add_axis(outside.axis(k), outside.extent(k));
      args[0] = simplify(args[0], &inner);
    }
    const Expr y = pool_.with_args(x, args);
    const Expr z = y.args().empty() ? y : root(y, facts);
    memo.emplace(x, z);
    return z;
  };
  return go(go, e);
}

}  // namespace nautilus::expr
