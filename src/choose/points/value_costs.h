// SPDX-License-Identifier: Apache-2.0
// What a value costs a thread that computes it: operations, and how neighbours read its elements.
#pragma once

#include "expr/expr.h"
#include "target/target.h"

namespace nautilus::choose {

// Of all nodes of the value; those of places of elements count, too.
double operations_of(expr::Expr value, const target::NestCosts& costs);

// The same along a row: places are computed for vectors and rows instead of elements.
double operations_along_row(expr::Expr value, const target::NestCosts& costs);

// How neighbours along an axis read: the same element, neighbouring elements, or elements far
// apart.
enum class Stride : uint8_t { None, One, Far };
Stride stride(expr::Expr read, expr::Expr axis);

}  // namespace nautilus::choose
