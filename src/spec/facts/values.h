// SPDX-License-Identifier: Apache-2.0
// What is known about the values of float expressions on level spec: signs, never 0, finite. As
// algebra::Signs, but also through the equations of the tensors that are read. Sound and
// incomplete. Inputs are finite by contract, except for those that the program compares with
// infinities; finite values are assumed not to overflow.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "algebra/sign.h"
#include "spec/ops.h"

namespace nautilus::spec {

using Equations = std::unordered_map<ir::Name, Let>;

class KnownValues {
 public:
  // Tensors without an equation are inputs. The equations may change between calls.
  KnownValues(const ir::Program& program, expr::ExprPool& pool, const Equations& equations);

  bool is_positive(expr::Expr e);
  bool is_nonnegative(expr::Expr e);
  bool is_nonzero(expr::Expr e);
  bool is_finite(expr::Expr e);
  // Finite or -inf, never NaN; with sign -1: finite or inf.
  bool is_below_infinity(expr::Expr e, int sign);

 private:
  bool positive(expr::Expr e);
  bool nonnegative(expr::Expr e);
  bool nonzero(expr::Expr e);
  bool finite(expr::Expr e);
  bool bounded(expr::Expr e, int sign);
  expr::Expr written_out(expr::Expr read);

  expr::ExprPool& pool_;
  const Equations& equations_;
  algebra::Signs signs_;
  // Tensors that the program compares with -inf and with inf: inputs among them may be infinite.
  std::unordered_set<ir::Name> asked_low_;
  std::unordered_set<ir::Name> asked_high_;
  int steps_ = 0;
};

}  // namespace nautilus::spec
