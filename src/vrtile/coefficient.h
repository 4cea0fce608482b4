// SPDX-License-Identifier: Apache-2.0
// How much of a reference's change reaches a value (vrtile/weights.h).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/op.h"

namespace nautilus::vrtile {

// A sum of products of scalars, each with a numeric coefficient.
class Coefficient {
 public:
  struct Less {
    bool operator()(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) const;
  };

  static Coefficient one() { return of({}, 1); }
  static Coefficient of(std::vector<ir::Expr> factors, double value);

  bool is_zero() const { return terms_.empty(); }
  Coefficient times(double x) const;
  // Empty if the scalar is not a product of numbers and variables.
  std::optional<Coefficient> times(ir::Expr scalar) const;
  friend Coefficient operator+(const Coefficient& a, const Coefficient& b);
  friend bool operator==(const Coefficient& a, const Coefficient& b) {
    return (a + b.times(-1)).is_zero();
  }
  // As an expression of the dtype; null if it is a sum.
  ir::Expr expression(expr::ExprPool& pool, ir::DType dtype) const;

 private:
  std::map<std::vector<ir::Expr>, double, Less> terms_;
};

}  // namespace nautilus::vrtile
