// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// How many partial results a thread has of its part of a reduction.
//
//   kernel Y                                     kernel Y chains 4
//     ... fold s[] = sum[k] x[k]          ->       ... fold s[] = sum[k] x[k]
//
// Why: a sum whose terms wait for each other takes the latency of an addition for each of them. A
// line `chains` of the kernel says another number.
//
// Test: test/matile/passes/chain_folds.matile.
std::optional<ir::Program> chain_folds(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
