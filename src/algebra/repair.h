// SPDX-License-Identifier: Apache-2.0
// The factor by which a sum is multiplied when the values it was taken against have moved.
//
//   running part  exp2(-finite(m)*c), m becomes m1:   exp2((m - finite(m1)) * c)
//
// The exponent is one difference, then one exponential, never a quotient of two. `finite(m)` of the
// old value is taken without its guard: an untouched maximum is -inf, the factor 0, and so is the
// sum. Where the sign of the exponent's factor is not proven the same is said by a select. Powers
// are quotients of new and old, guarded where the old value may be 0.
#pragma once

#include "algebra/separate.h"

namespace nautilus::algebra {

// A running value with the name of its value before and after a step, and what it starts from.
struct Moved {
  Expr read;   // as it stands in the terms
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
