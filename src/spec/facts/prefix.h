// SPDX-License-Identifier: Apache-2.0
// Reductions of the elements of an axis up to that of the result, or from it on:
//
//   Y[i, t] = sum[s < N] where(s <= t, f(i, s), 0)
//
// However the condition is written. What is reduced does not contain t, so that one walk along s
// gives the results of all t.
#pragma once

#include <optional>

#include "spec/ops.h"

namespace nautilus::spec {

struct Prefix {
  size_t axis = 0;    // t, among the axes of the equation
  bool is_up = true;  // terms with s <= t + offset; else with s >= t + offset
  int64_t offset = 0;
  ir::Expr body;    // f
  ir::Expr masked;  // what stands for other terms: nothing that counts, but for positions
};

// Nothing if the equation is no such reduction.
std::optional<Prefix> prefix_of(const Let& let, expr::ExprPool& pool);

}  // namespace nautilus::spec
