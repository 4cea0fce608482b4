// SPDX-License-Identifier: Apache-2.0
// Bounds of the size of float expressions in the dtypes that kernels compute in, as powers of two.
//
// KnownValues speaks of real numbers: exp(200 * c) is finite. In f32 it is infinite from c = 0.45
// on. The question here is whether a value stays within the range of its dtype for all inputs, so
// that it may be computed where the program does not compute it. Sound and incomplete.
#pragma once

#include "spec/facts/values.h"

namespace nautilus::spec {

class Magnitudes {
 public:
  Magnitudes(const ir::Program& program, expr::ExprPool& pool, const Equations& equations)
      : pool_(pool), equations_(equations), values_(program, pool, equations) {}

  // Every kernel gets a finite number if the value over the reals is finite.
  bool is_in_range(expr::Expr e);
  // No kernel gets 0 if the value over the reals is not 0.
  bool is_away_from_zero(expr::Expr e);

 private:
  // |e| < 2^largest; infinite if the value or a part of it may leave the range of its dtype.
  double largest(expr::Expr e);
  double largest_exponential(expr::Expr e);
  double largest_exponent(expr::Expr e);
  double largest_element(expr::Expr read);
  // |e| >= 2^smallest; minus infinite if it may be 0.
  double smallest(expr::Expr e);
  double smallest_sum(expr::Expr e);
  expr::Expr written_out(expr::Expr read);

  expr::ExprPool& pool_;
  const Equations& equations_;
  KnownValues values_;
  int steps_ = 0;
};

}  // namespace nautilus::spec
