// SPDX-License-Identifier: Apache-2.0
// Scalar expressions as C++ text in which every operator has the meaning that the language gives it
// for its dtype: integers wrap at their width, casts round once, functions are accurate, except for
// those of f32 where the program allows coarse ones (docs/language.md, section 8). Used for scalar
// code (matile::Points); tiles use expression.h, where integers have 32 bits and functions are
// approximate.
#pragma once

#include "emit/expression.h"

namespace nautilus::emit {

// The C++ type that carries a dtype: integers below 32 bits are `int`, floats below `float`.
std::string_view carrier(expr::DType dtype);

// `names.facts` decides where integer arithmetic cannot overflow: an expression of axes and sizes
// with known bounds is an index.
std::string typed_expression(expr::Expr e, const ExpressionNames& names);

}  // namespace nautilus::emit
