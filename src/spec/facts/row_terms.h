// SPDX-License-Identifier: Apache-2.0
// Finite terms of an equation's sums that are the same along an axis of the tensor, or along all
// reduced axes if it is a maximum or minimum: `c[i]` of `S[i, j] + c[i]`.
#pragma once

#include <utility>
#include <vector>

#include "spec/facts/values.h"

namespace nautilus::spec {

class RowTerms {
 public:
  RowTerms(const ir::Program& program, expr::ExprPool& pool);

  // With the number of axes at which they are added.
  std::pair<std::vector<expr::Expr>, size_t> of(const Let& let);

  // An input that is added unchanged may be a mask: the contract lets inputs be infinite where the
  // program handles infinities itself. Results of products and sums are finite.
  bool may_be_mask(expr::Expr term);

 private:
  void visit(expr::Expr e);
  void addend(expr::Expr e);
  bool is_mask(expr::Expr e);

  expr::ExprPool& pool_;
  Equations equations_;
  KnownValues values_;
  std::vector<expr::Expr> terms_;
  std::vector<expr::Expr> missing_;
  bool handles_infinity_ = false;  // the program names one
  bool is_all_ = false;            // of `missing_`, or one of them
  int steps_ = 0;
};

// The number that masks put in place of elements, or the one of a minimum.
bool is_infinity(expr::Expr e);

}  // namespace nautilus::spec
