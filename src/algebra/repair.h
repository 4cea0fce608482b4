// SPDX-License-Identifier: Apache-2.0
// The factor by which a sum is multiplied when its references have moved.
//
//   running part  exp2(-finite(m)*c), m becomes m1:   exp2((m - finite(m1)) * c)
//
// The exponent is one difference, then one exponential, never a quotient of two. `finite(m)` of the
// old value is used without its guard: a maximum of no terms is -inf, so the factor is 0, and so is
// the sum. Where the sign of the exponent's factor is not proven, a select gives the same result.
// Powers are quotients of new and old, guarded where the old value may be 0.
#pragma once

#include "algebra/separate.h"

namespace nautilus::algebra {

// A running value with the names of its value before and after a step, and its initial value.
struct Moved {
  Expr read;   // as the terms read it
  Expr after;  // the new value; the old one keeps the read
  double identity;
};

// Null if the running part does not change.
Expr repair_factor(ExprPool& pool, const RunningPart& part, const std::vector<Moved>& moved,
                   const Signs& signs);

// x where it is not the identity, else 0: the reference that may be subtracted. `where(x == -inf,
// 0, x)`.
Expr guarded_reference(ExprPool& pool, Expr x, double identity);
// If `e` is a guarded reference of some x, that x; null otherwise.
Expr unguarded(Expr e, double identity);

}  // namespace nautilus::algebra
