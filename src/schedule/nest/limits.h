// SPDX-License-Identifier: Apache-2.0
// The value of an expression when some of its elements have limit values: is a term zero where a
// mask hides it?
//
//   exp2(T*c - finite(m)*c) * V    with T = -inf, c > 0    is 0
#pragma once

#include "algebra/sign.h"
#include "expr/walk.h"

namespace nautilus::schedule {

enum class Limit : uint8_t { Zero, MinusInf, PlusInf, Finite, Unknown };

Limit limit_of(double value);

// Tensor elements that are not in `values` count as finite, and so do the results of reductions:
// infinite inputs are outside the contract of a masked position. An extreme value that is
// guarded against its identity is finite, too.
Limit limit_of(expr::Expr e, const std::unordered_map<expr::Expr, Limit>& values,
               const algebra::Signs& signs);

}  // namespace nautilus::schedule
