// SPDX-License-Identifier: Apache-2.0
// Reductions of the elements of an axis up to the place of the result, or from it on:
//
//   Y[i, t] = sum[s < N] where(s <= t, f(i, s), 0)
//
// The condition may be written in any form. The terms do not contain t, so that one walk along s
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
  ir::Expr masked;  // the value of other terms: the identity, except for positions
};

// Nothing for other equations.
std::optional<Prefix> prefix_of(const Let& let, expr::ExprPool& pool);

// The converse: a scan of one equation with steps that only combine the state with a term is such a
// reduction.
//
//   let H[t < T] : f32 = where(t >= 1, H[t - 1], z) + f(t)
// is
//   let H[t < T] : f32 = sum[s < T from z] where(s <= t, f(s), 0.0)
std::optional<Let> as_prefix(const Let& let, size_t along, Direction direction,
                             expr::ExprPool& pool);

}  // namespace nautilus::spec
