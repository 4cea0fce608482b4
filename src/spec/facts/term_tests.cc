// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/term_tests.h"

#include "algebra/contraction.h"
#include "expr/conjuncts.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;

std::vector<Expr> term_tests(Expr term) {
  std::vector<Expr> out;
  for (Expr f : algebra::factors(term)) {
    const bool is_test = f.op() == Op::Select && f[2].op() == Op::FloatConst && f[2].number() == 0;
    if (!is_test) continue;
    for (Expr test : expr::conjuncts(f[0])) out.push_back(test);
    for (Expr inner : term_tests(f[1])) out.push_back(inner);
  }
  return out;
}

ResidueTest residue_test(Expr condition) {
  const bool is_residue =
      condition.op() == Op::Eq && condition[1].is_int(0) && condition[0].op() == Op::Mod;
  if (!is_residue) return {};
  const Expr modulus = condition[0][1];
  if (modulus.op() != Op::IntConst || modulus.integer() < 2) return {};
  return {condition[0][0], modulus.integer()};
}

}  // namespace nautilus::spec
