// SPDX-License-Identifier: Apache-2.0
// Whether a term is 0 where some of its parts are infinite:
//
//   exp(x - r) * v,  x = -inf        0, whatever the finite numbers r and v are
//   exp(y - r),      x = -inf        not known: it does not depend on x
//
// A running maximum of -inf has seen no number yet. A sum that follows it (repair.h) is then
// multiplied by 0 when the first number comes, which is right if its terms so far are 0, or NaN.
// Values of which nothing is said count as finite: where they are not, 0 times them is NaN by
// definition as well. Sound and incomplete.
#pragma once

#include <unordered_map>

#include "algebra/sign.h"

namespace nautilus::algebra {

// `at`: parts of the term, with their values there.
bool vanishes_at(expr::Expr term, const std::unordered_map<expr::Expr, double>& at,
                 const Signs& signs);

}  // namespace nautilus::algebra
