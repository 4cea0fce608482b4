// SPDX-License-Identifier: Apache-2.0
// Products that one kernel stores and another computes again. Sums of floats in another order
// differ in their last bits, which is harmless unless a statement depends on both. Where one does,
//
//   kernel 1: S = Q K, stored          kernel 2: S = Q K again, m = max S, l = sum exp(S - m)
//   kernel 3: P = exp(S - m) / l
//
// a rounding of S becomes an error of the exponential: rows of P do not add up to 1. The second
// kernel then has to read the tensor that the first one stores.
#pragma once

#include <set>
#include <vector>

#include "schedule/apply/kernel.h"
#include "schedule/fusion/statement.h"

namespace nautilus::schedule {

struct ComputedTwice {
  int seed = 0;       // of the kernel that computes it again
  int statement = 0;  // that passes through memory for others
};

// `kernels` with the members they store, `plain` the statements outside all of them (apply.h,
// remaining).
std::vector<ComputedTwice> computed_twice(const StatementList& list,
                                          const std::vector<Kernel>& kernels,
                                          const std::set<int>& plain);

}  // namespace nautilus::schedule
