// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// A value that is the same along a row is computed once per row, and a value that depends only on
// the column once per column (for tiles up to 64 columns wide: a thread has two rows, but a quarter
// of the columns).
//
//   set S[i < 64, j < 80] = exp2(S[i, j] * c - m[i] * c)    set m_row[i < 64] = m[i] * c
//   set y[i < 64, e < 128] = bf16(U[i, e] / l[i])     ->    set S[i < 64, j < 80] = exp2(S[i, j] *
//   c - m_row[i])
//                                                           set l_row[i < 64] = 1.0 / l[i]
//                                                           set y[i < 64, e < 128] = bf16(U[i, e] *
//                                                           l_row[i])
//
// Values that are the same in all copies of an unrolled block are computed before the block.
//
// A division by such a value becomes a product with its reciprocal, unless `numerics exact` forbids
// rounding twice.
//
// Needs nest form with spread layouts, keeps it. Test: test/matile/passes/hoist_rows.matile.
std::optional<ir::Program> hoist_rows(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
