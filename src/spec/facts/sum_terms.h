// SPDX-License-Identifier: Apache-2.0
// The terms of a value that is linear in sums of products:
//
//   (Z[i, j] + b[j]) * c[i]   with   Z[i, j] = sum[k < K] X[i, k] * W[j, k]
//
// has the terms  c[i] * (sum[k < K] X[i, k] * W[j, k])  and  b[j] * c[i]. Looks through equations
// with one reader, whose tensors nobody needs then.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "spec/ops.h"

namespace nautilus::spec {

struct SumTerm {
  expr::Expr sum;  // a reduction; null if the term has none
  std::vector<expr::Expr> factors;
  std::vector<expr::Expr> divisors;
  bool is_negative = false;
};

class SumTerms {
 public:
  SumTerms(const ir::Program& program, expr::ExprPool& pool);

  // Empty if the value is not linear in sums, has none, or has too many terms. `axes`: those of the
  // value. Axes of the sums get names that are not among `taken`, which grows by them.
  std::vector<SumTerm> of(expr::Expr value, const ir::Axes& axes,
                          std::unordered_set<expr::Expr>& taken);

 private:
  bool has_sum(expr::Expr e);
  // What stands for the read of a tensor that has no other reader; null for other tensors.
  expr::Expr definition(expr::Expr read) const;
  bool reads_once(expr::Expr read) const;
  bool add(expr::Expr e, SumTerm term, std::unordered_set<expr::Expr>& taken,
           std::vector<SumTerm>& out);
  Let with_own_axes(const Let& let, std::unordered_set<expr::Expr>& taken);

  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, Let> private_;
  std::unordered_map<expr::Expr, int> written_;  // how many equations have the reduction
  std::unordered_map<expr::Expr, bool> has_sum_;
  std::unordered_map<expr::Expr, int64_t> places_;  // of axes with a known extent
};

}  // namespace nautilus::spec
