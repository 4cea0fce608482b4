// SPDX-License-Identifier: Apache-2.0
// Dtype promotion of the math language (docs/language.md, section 5): casts are inserted here and
// nowhere else.
#pragma once

#include <optional>

#include "expr/expr.h"

namespace nautilus::spec {

// How firmly an operand holds its dtype.
enum class Hold : uint8_t {
  Firm,     // data: tensor elements, scalars, results of casts
  Index,    // axes and sizes: i64 that takes any float dtype it meets
  Literal,  // numbers in the text: take the other operand's dtype
};

struct Typed {
  expr::Expr e;
  Hold hold = Hold::Firm;
  bool has_size = false;  // a Literal that contains a static size
  explicit operator bool() const { return static_cast<bool>(e); }
};

// Brings two operands to one dtype; false if their dtypes do not promote.
bool promote(expr::ExprPool& pool, Typed& x, Typed& y);

// The operand in a float dtype: literals and indices become f32; null for data that is not float.
Typed as_float(expr::ExprPool& pool, Typed x);

// A tensor element or scalar as it takes part in arithmetic: widened to its compute dtype.
expr::Expr widen(expr::ExprPool& pool, expr::Expr e);

// A constant integer that `dtype` cannot hold.
bool is_too_large(expr::DType dtype, expr::Expr e);

// Whether a value may become a `to` without a written cast: by can_store, or as a number or index
// in a float dtype.
bool can_become(expr::DType to, const Typed& value);

// Whether `-> to` may store a value of dtype `from` without a written cast: same family, except for
// bool.
bool can_store(expr::DType to, expr::DType from);

}  // namespace nautilus::spec
