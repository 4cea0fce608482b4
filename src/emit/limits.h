// SPDX-License-Identifier: Apache-2.0
// Conditions on coordinates, with everything that is the same for all registers moved out of the
// loop.
//
// `80*n + j <= r + i + d and 80*n + j < N` compares, for each register, a constant with a limit of
// the thread: the coordinates of a register are its digits plus what the thread adds. Comparisons
// of a conjunction share one limit per value of the digits in which they differ (here the row's),
// so that an element costs one comparison. Digits that count within whole pieces, which are
// entirely on one side of the limit (`j < N` with `N % 8 == 0`), are left out.
#pragma once

#include <string>

#include "emit/writer.h"
#include "expr/bounds/affine.h"
#include "expr/bounds/divisors.h"
#include "expr/expr.h"
#include "matile/access.h"

namespace nautilus::emit {

struct ExpressionNames;

// A comparison of integers as `difference >= 0`; empty if it is none.
std::optional<expr::Poly> difference_of(expr::Expr e);

// Where a condition is asked: at the points of a domain.
struct LimitScope {
  const matile::Domain& domain;
  const ExpressionNames& names;
  const expr::Divisors& divisors;
  expr::ExprPool& pool;
};

// Writes the limits of a conjunction of integer comparisons and returns the condition of register
// `e` over them; an empty string if the condition has another form. `name` is new in the scope.
std::string emit_limits(expr::Expr condition, const LimitScope& scope, const std::string& name,
                        const std::string& e, Writer& out);

}  // namespace nautilus::emit
