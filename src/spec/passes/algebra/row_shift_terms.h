// SPDX-License-Identifier: Apache-2.0
// Sums of products whose factors are told apart by what they vary along: what leaves a sum over the
// reduced axes, and what stays in it (distribute_row_shift.h).
#pragma once

#include <optional>
#include <vector>

#include "expr/build.h"

namespace nautilus::spec {

struct ShiftFactor {
  expr::Expr value;
  bool is_divisor = false;
  bool operator==(const ShiftFactor&) const = default;
};
using ShiftFactors = std::vector<ShiftFactor>;

// +- (values of the row) * (values along the reduced axes) * (one that varies along both)
struct ShiftTerm {
  bool is_negative = false;
  ShiftFactors row;
  ShiftFactors along;
  expr::Expr varying;  // null: 1
};
using ShiftTerms = std::vector<ShiftTerm>;

// More are not looked at.
constexpr size_t kMaxShiftTerms = 6;

// `all` without `part`; nothing if it has not all of them.
std::optional<ShiftFactors> without(ShiftFactors all, const ShiftFactors& part);

ShiftTerms negated(ShiftTerms terms);
// None if there would be too many.
ShiftTerms times(const ShiftTerms& a, const ShiftTerms& b, expr::ExprPool& pool);
// Of terms that differ only in what varies one stays, the sum of them.
ShiftTerms joined(const ShiftTerms& terms, expr::ExprPool& pool);

// sum +- e; `sum` may be null.
expr::Expr plus(expr::ExprPool& pool, expr::Expr sum, expr::Expr e, bool is_negative);
// first * factors; `first` may be null.
expr::Expr product(expr::ExprPool& pool, expr::Expr first, const ShiftFactors& list);

}  // namespace nautilus::spec
