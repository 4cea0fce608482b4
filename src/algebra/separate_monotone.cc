// SPDX-License-Identifier: Apache-2.0
// The separation of what a maximum or minimum takes: a sum, or a product with a positive running
// factor.
#include "algebra/mixed_values.h"
#include "algebra/separate.h"

namespace nautilus::algebra {

using expr::Op;

Outcome<MonotoneSplit> Separator::separate_monotone(Expr g) {
  const uint8_t c = class_of(g);
  if (!(c & kRunning)) return MonotoneSplit{true, {}, g};
  if (!(c & kStreamed)) return MonotoneSplit{true, g, {}};
  // A sum of pure terms.
  std::vector<std::pair<Expr, int>> terms;
  auto sum = [&](auto& self, Expr e, int sign) -> void {
    const bool is_mixed = class_of(e) == (kRunning | kStreamed);
    if (is_mixed && (e.op() == Op::Add || e.op() == Op::Sub)) {
      self(self, e[0], sign);
      self(self, e[1], e.op() == Op::Sub ? -sign : sign);
    } else if (is_mixed && e.op() == Op::Neg) {
      self(self, e[0], -sign);
    } else {
      terms.emplace_back(e, sign);
    }
  };
  sum(sum, g, 1);
  auto join = [&](Expr acc, Expr x, int sign) {
    if (!acc) return sign < 0 ? pool_.unary(Op::Neg, x) : x;
    return pool_.binary(sign < 0 ? Op::Sub : Op::Add, acc, x);
  };
  MonotoneSplit additive;
  bool is_additive = true;
  for (const auto& [e, sign] : terms) {
    if (class_of(e) == (kRunning | kStreamed)) is_additive = false;
    Expr& side = is_running(e) ? additive.running : additive.streamed;
    side = join(side, e, sign);
  }
  if (is_additive) return additive;
  // One product with a positive running factor.
  const auto s = separate(g);
  if (!s) return s.rejection();
  if (s->terms.size() != 1)
    return mixed("monotone", "a maximum or minimum of terms that do not separate", g);
  const SeparatedTerm& t = s->terms[0];
  Expr a;
  auto factor = [&](Expr x) { a = a ? times(a, x) : x; };
  for (const Power& p : t.running.powers) {
    if (!signs_.is_positive(p.atom))
      return mixed("sign", "a running factor that is not proven positive", p.atom);
    factor(p.exponent == 1
               ? p.atom
               : pool_.binary(Op::Pow, p.atom, pool_.constant(p.exponent, p.atom.dtype())));
  }
  for (const ExpTerm& x : t.running.exponents) {
    Expr e = x.factor ? pool_.binary(Op::Mul, x.core, x.factor) : x.core;
    if (x.sign < 0) e = pool_.unary(Op::Neg, e);
    factor(pool_.unary(x.is_base2 ? Op::Exp2 : Op::Exp, e));
  }
  return MonotoneSplit{false, a, t.streamed};
}

}  // namespace nautilus::algebra
