// SPDX-License-Identifier: Apache-2.0
// Runs every recurrence on numbers before it is used.
//
// The terms of a fusion's rolled reductions are evaluated on random rows, once with the final
// values of the definition, once step by step with repairs. Rows are: random, constant, far from
// zero, with a masked beginning, masked altogether. Derived recurrences are exact over the reals,
// so both must agree to a few units of fp64.
#pragma once

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// The first disagreement, or nothing.
std::optional<Rejection> self_test(const Fusion& fusion, const algebra::Signs& signs,
                                   expr::ExprPool& pool);

}  // namespace nautilus::schedule
