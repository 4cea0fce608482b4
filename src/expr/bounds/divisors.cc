// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/divisors.h"

#include <algorithm>

namespace nautilus::expr {

void assume_divisor(Expr fact, Divisors& divisors) {
  if (fact.op() != Op::Eq || !fact[1].is_int(0)) return;
  const Expr mod = fact[0];
  if (mod.op() != Op::Mod || mod[0].op() != Op::Var || !mod[1].is_const()) return;
  const int64_t divisor = mod[1].integer();
  // The remainder of a division by 0 is 0, which says nothing.
  if (divisor == 0) return;
  const auto [known, is_new] = divisors.emplace(mod[0].name().str(), divisor);
  if (!is_new && known->second % divisor != 0) known->second = divisor;
}

bool is_multiple(const Poly& poly, int64_t n, const Divisors& divisors) {
  return std::all_of(poly.terms().begin(), poly.terms().end(), [&](const auto& term) {
    int64_t rest = term.second % n;
    for (Expr atom : term.first) {
      if (atom.op() != Op::Var) continue;
      const auto known = divisors.find(atom.name().str());
      if (known != divisors.end()) rest = rest * (known->second % n) % n;
    }
    return rest == 0;
  });
}

}  // namespace nautilus::expr
