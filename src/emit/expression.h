// SPDX-License-Identifier: Apache-2.0
// Scalar expressions as C++ text for kernel bodies. Integers are `int`, floats `float`.
#pragma once

#include <functional>
#include <string>

#include "emit/identifier.h"
#include "expr/bounds/bounds.h"
#include "expr/expr.h"

namespace nautilus::emit {

struct ExpressionNames {
  // Text of a variable and of an element of a tensor; both must be safe as operands.
  std::function<std::string(expr::Expr var)> variable;
  std::function<std::string(expr::Expr read)> read;
  // Text that replaces a whole subexpression, or empty. Asked before anything else.
  std::function<std::string(expr::Expr e)> instead;
  // What is known about the variables: decides how division rounds.
  const expr::Facts* facts = nullptr;
  // Elements of memory that are read under a condition of their own, `where(c, X[i], 0)`, may be
  // read wherever c holds: conditions are then evaluated without branches.
  bool is_eager = false;
  std::function<bool(expr::Expr read)> is_memory;  // and not a register
  // Divisions as exact as the language's, for values that are computed once instead of once per
  // element.
  bool is_accurate = false;
  // Uses a function with a larger error where one of a few ulp is slow (docs/language.md, section
  // 8).
  bool is_coarse = false;
  // A value of the program: integers have the width of their dtype. Otherwise a number of the
  // kernel itself, for which 32 bits are enough.
  bool is_value = false;
};

// Binding strength of what is printed, as in C++: the caller's context decides on parentheses.
std::string expression(expr::Expr e, const ExpressionNames& names);

// `where(c, X[i], n)` of integers of 32 or 64 bits, or of flags.
bool is_guarded_read(expr::Expr e);

// A float literal: `8.f`, `-infinity()`.
std::string float_literal(double value);

}  // namespace nautilus::emit
