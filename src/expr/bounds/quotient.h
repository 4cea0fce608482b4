// SPDX-License-Identifier: Apache-2.0
// Division without remainder, known from the form of an index expression alone.
#pragma once

#include "expr/expr.h"

namespace nautilus::expr {

// e / n if e is n times a polynomial, for n a positive constant or a variable: Hk * G by G is Hk.
// Null otherwise.
Expr exact_quotient(ExprPool& pool, Expr e, Expr n);

}  // namespace nautilus::expr
