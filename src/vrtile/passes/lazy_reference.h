// SPDX-License-Identifier: Apache-2.0
// A running reference of accumulators moves only when it is far off (by 2^8 in the values that it
// scales), for 16 rows at a time; otherwise the old reference stays and nothing is rescaled.
//
//   set m1[i < 64] = max(m[i], mt[i])
//   set a[i < 64] = exp2((m[i] - m1[i]) * c)
//   set x[i < 64, e < 64] = u[i, e] * a[i]
// becomes
//   reduce m1_moves[g < 4] = any[y < 16] ((mt[16 * g + y] - m[16 * g + y]) * c > 8.0)
//   set m1[i < 64] = where(m1_moves[i / 16], max(m[i], mt[i]), m[i])
//   set a[i < 64] = where(m1_moves[i / 16], exp2((m[i] - m1[i]) * c), 1.0)
//   set x[i < 64, e < 64] = where(m1_moves[i / 16], u[i, e] * a[i], u[i, e])
//
// Which carried value is a reference and which accumulators are relative to it is derived
// (vrtile/weights.h): any sequence of references must give the same results. A loop for which that
// is not shown stays unchanged.
//
// Test: test/vrtile/lazy_reference.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> lazy_reference(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile
