// SPDX-License-Identifier: Apache-2.0
// Scans of one equation with a step that is affine in the state:
//
//   let S[t < T, d < D, e < E] : f32 =
//     a[t] * where(t >= 1, S[t - 1, d, e], z[d, e]) + k[t, d] * v[t, e]
// has the decay a[t], the term k[t, d] * v[t, e] and the initial element z[d, e].
//
// Found by the normal form of algebra/separate.h, however the step is written; a refusal names the
// node that prevents it.
#pragma once

#include "algebra/outcome.h"
#include "spec/scans.h"

namespace nautilus::spec {

struct AffineScan {
  size_t along = 0;   // the axis of its steps
  ir::Expr decay;     // null: 1
  ir::Expr term;      // what a step adds
  ir::Expr initial;   // before the first step
  ir::Expr is_later;  // the condition that a previous step exists
};

algebra::Outcome<AffineScan> affine_scan(const EquationGroup& scan, const ir::Program& program,
                                         expr::ExprPool& pool);

// Whether a step only adds a term to the state: an ordinary prefix sum.
inline bool is_plain(const AffineScan& scan) { return !scan.decay; }

}  // namespace nautilus::spec
