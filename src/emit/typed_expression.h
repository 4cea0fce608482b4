// SPDX-License-Identifier: Apache-2.0
// Scalar expressions as C++ text in which every operator has the meaning that the language gives it
// for its dtype: integers wrap at their width, casts round once, functions are accurate, but for
// those of f32 where the program allows coarse ones (docs/language.md, section 8). The text of
// scalar code (matile::Points); tiles use expression.h, where integers have 32 bits and functions
// are approximate.
#pragma once

#include "emit/expression.h"

namespace nautilus::emit {

// The C++ type that carries a dtype: integers below 32 bits are `int`, floats below `float`.
std::string_view carrier(expr::DType dtype);

// `names.facts` decides where integer arithmetic needs no care: what is known about an expression
// of axes and sizes is that it is an index.
std::string typed_expression(expr::Expr e, const ExpressionNames& names);

}  // namespace nautilus::emit
