// SPDX-License-Identifier: Apache-2.0
// Sums with terms that are polynomials of moving values: a finite separation rank.
//
//   T = sum (x[j] - r)^2, and r becomes r1:
//   T becomes T + d*T1 + d*d/2*T2,    d = r1 - r,    T1 = sum -2*(x[j] - r),    T2 = sum 2
//
// The sums of the derivatives are carried along, each moved by those of higher order. Nothing is
// expanded: every sum stays relative to the reference, so the added terms are small if the
// reference is near. Raw moments would cancel. Exactness class: exact over the reals.
#pragma once

#include <vector>

#include "algebra/outcome.h"
#include "expr/walk.h"

namespace nautilus::algebra {

// The derivative of a term by these symbols, in rising order; by none: the term itself.
struct Moment {
  std::vector<size_t> by;
  expr::Expr term;
};

// The term and all its derivatives that are not 0, the term first, higher ones later. Refused:
// terms that are not polynomials of the symbols, or have a degree above 2.
Outcome<std::vector<Moment>> moments_of(expr::ExprPool& pool, expr::Expr term,
                                        const std::vector<expr::Expr>& symbols);

// The k-th sum after the references moved by `steps`, one for each symbol. `sums`: all of them
// before.
expr::Expr moved_sum(expr::ExprPool& pool, const std::vector<Moment>& moments, size_t k,
                     const std::vector<expr::Expr>& sums, const std::vector<expr::Expr>& steps);

}  // namespace nautilus::algebra
