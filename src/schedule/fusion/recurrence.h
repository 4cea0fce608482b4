// SPDX-License-Identifier: Apache-2.0
// How a rolled reduction follows the running values in its terms from step to step.
//
//   acc = forget(move(acc) * factor) (+) terms of the step, against the new values
//
// forget: the sum is dropped where an extreme moved that the terms must attain
// (algebra/attained.h). move:   a sum of polynomials of references moves to the new references
// (algebra/moments.h). factor: exponentials of references (algebra/repair.h).
#pragma once

#include "algebra/moments.h"
#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// The references of a sum of polynomials. They may be any values that end as the definition says.
// Plain sums that they read are extrapolated to the whole axis, so that no term is relative to a
// value far from the final one.
struct Shift {
  std::vector<Expr> references;  // of the fusion, with element-wise members written out
  std::vector<Expr> symbols;     // stand for them in the terms
  std::vector<algebra::Moment> moments;
  std::vector<Expr> plain_sums;  // reads of the references that are extrapolated to the whole axis
};

struct Recurrence {
  algebra::RunningPart part;
  std::vector<Expr> attained;  // reads of rolled extremes
  std::optional<Shift> shift;

  bool is_plain() const { return part.is_one() && attained.empty() && !shift; }
};

// The recurrence of a rolled member, or why there is none. Checks what a rolling update needs
// beyond the algebra (safe references, initial elements).
Outcome<Recurrence> recurrence_of(const Fusion& fusion, const Member& member,
                                  const algebra::Signs& signs, expr::ExprPool& pool);

// A reference with its plain sums extrapolated to the whole axis, of which `part` has been seen.
Expr extrapolated(const Shift& shift, Expr reference, Expr seen, Expr all, expr::ExprPool& pool);

Expr is_finite(Expr x, expr::ExprPool& pool);
// How far a reference moved; 0 if the old or the new one is not a number yet.
Expr step_of(Expr before, Expr after, expr::ExprPool& pool);

}  // namespace nautilus::schedule
