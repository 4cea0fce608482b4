// SPDX-License-Identifier: Apache-2.0
// The conditions without which a term of a sum is 0: those of the selects among its factors.
//
//   w[r] * where((i + 1 - r) % 2 == 0 and i < N, x[(i + 1 - r) / 2], 0.0)
//
// has  (i + 1 - r) % 2 == 0  and  i < N.
#pragma once

#include <vector>

#include "expr/expr.h"

namespace nautilus::spec {

std::vector<expr::Expr> term_tests(expr::Expr term);

// The number and the modulus of a test `number % modulus == 0`; else null.
struct ResidueTest {
  expr::Expr number;
  int64_t modulus = 0;
};
ResidueTest residue_test(expr::Expr condition);

}  // namespace nautilus::spec
