// SPDX-License-Identifier: Apache-2.0
// Warns about valid texts that may not mean what their author intended.
#pragma once

#include "diag/diagnostic.h"
#include "spec/language/math_syntax.h"

namespace nautilus::spec {

// The body of a reduction is a product: in `E / sum[j] E[j] * s` the factor `s` is inside the sum,
// and E is divided by it. Warns of such factors, if they do not depend on the axes reduced over, in
// divisors and where the reducer is not linear in a positive factor (prod, argmax, argmin).
void warn_of_precedence(const MathSyntax& math, diag::Sink& sink);

}  // namespace nautilus::spec
