// SPDX-License-Identifier: Apache-2.0
#include "expr/conjuncts.h"

namespace nautilus::expr {

std::vector<Expr> conjuncts(Expr condition) {
  std::vector<Expr> out;
  std::vector<Expr> left;
  if (condition) left.push_back(condition);
  while (!left.empty()) {
    const Expr next = left.back();
    left.pop_back();
    if (next.op() == Op::And) {
      left.push_back(next[1]);
      left.push_back(next[0]);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

}  // namespace nautilus::expr
