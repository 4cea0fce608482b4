// SPDX-License-Identifier: Apache-2.0
#include "algebra/repair.h"

#include <cmath>

namespace nautilus::algebra {

using expr::Op;

Expr guarded_reference(ExprPool& pool, Expr x, double identity) {
  const Expr limit = pool.constant(identity, x.dtype());
  return pool.select(pool.binary(Op::Eq, x, limit), pool.constant(0, x.dtype()), x);
}

Expr unguarded(Expr e, double identity) {
  if (e.op() != Op::Select || e[1].op() != Op::FloatConst || e[1].number() != 0) return {};
  const Expr c = e[0];
  if (c.op() != Op::Eq) return {};
  for (const size_t k : {size_t{0}, size_t{1}}) {
    if (c[k] == e[2] && c[1 - k].op() == Op::FloatConst && c[1 - k].number() == identity)
      return e[2];
  }
  return {};
}

Expr repair_factor(ExprPool& pool, const RunningPart& part, const std::vector<Moved>& moved,
                   const Signs& signs) {
  expr::Substitution to_new;
  for (const Moved& m : moved) to_new.emplace(m.read, m.after);
  Expr result;
  auto times = [&](Expr x) { result = result ? pool.binary(Op::Mul, result, x) : x; };
  for (const bool is_base2 : {true, false}) {
    Expr exponent;
    Expr is_untouched;  // a condition under which the sum is still empty
    for (const ExpTerm& t : part.exponents) {
      if (t.is_base2 != is_base2) continue;
      const Expr after = expr::substitute(pool, t.core, to_new);
      if (after == t.core) continue;
      Expr before = t.core;
      for (const Moved& m : moved) {
        if (unguarded(t.core, m.identity) != m.read && t.core != m.read) continue;
        // exponent = sign * (after - before): to be -inf for an untouched extreme value.
        const bool falls = (t.sign < 0) == (m.identity < 0);
        if (falls && (!t.factor || signs.is_positive(t.factor))) {
          before = m.read;
        } else {
          before = guarded_reference(pool, m.read, m.identity);
          const Expr c = pool.binary(Op::Eq, m.read, pool.constant(m.identity, m.read.dtype()));
          is_untouched = is_untouched ? pool.binary(Op::Or, is_untouched, c) : c;
        }
      }
      Expr difference =
          t.sign < 0 ? pool.binary(Op::Sub, before, after) : pool.binary(Op::Sub, after, before);
      if (t.factor) difference = pool.binary(Op::Mul, difference, t.factor);
      exponent = exponent ? pool.binary(Op::Add, exponent, difference) : difference;
    }
    if (!exponent) continue;
    Expr factor = pool.unary(is_base2 ? Op::Exp2 : Op::Exp, exponent);
    if (is_untouched) factor = pool.select(is_untouched, pool.constant(0, factor.dtype()), factor);
    times(factor);
  }
  for (const Power& p : part.powers) {
    const Expr after = expr::substitute(pool, p.atom, to_new);
    if (after == p.atom) continue;
    const bool is_rising = p.exponent > 0;
    const Expr above = is_rising ? after : p.atom;
    const Expr below = is_rising ? p.atom : after;
    const Expr zero = pool.constant(0, below.dtype());
    const Expr one = pool.constant(1, below.dtype());
    Expr ratio =
        pool.select(pool.binary(Op::Eq, below, zero), one, pool.binary(Op::Div, above, below));
    const double e = std::fabs(p.exponent);
    if (e == 0.5) {
      ratio = pool.unary(Op::Sqrt, ratio);
    } else if (e == 2) {
      ratio = pool.binary(Op::Mul, ratio, ratio);
    } else if (e != 1) {
      ratio = pool.binary(Op::Pow, ratio, pool.constant(e, ratio.dtype()));
    }
    times(ratio);
  }
  return result;
}

}  // namespace nautilus::algebra
