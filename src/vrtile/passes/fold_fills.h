// SPDX-License-Identifier: Apache-2.0
// Inlines tiles filled with one number into the expressions that read them, and folds the results.
// This simplifies a peeled first iteration, which computes with the initial values of a loop.
//
//   set m_init[i < 64] = -inf
//   set m1[i < 64] = max(m_init[i], mt[i])
//   set a[i < 64] = exp2((m_init[i] - where(m1[i] == -inf, 0.0, m1[i])) * c)
//   set x[i < 64] = 0.0 * a[i]
// becomes, where c > 0 is known,
//   set x[i < 64] = 0.0
// with mt in place of m1.
//
// A guard is removed if the guarded value already equals the other branch where the guard fails,
// because of the fills of its loads: sum[k] where(64 * n + k < K, x[i, k] * x[i, k], 0.0) needs
// none if x is 0 there.
//
// Folds that hold for all numbers but not for NaN or infinities need tiles that are known to have
// none (vrtile/finite.h). Test: test/vrtile/fold_fills.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> fold_fills(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile
