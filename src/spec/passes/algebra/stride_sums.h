// SPDX-License-Identifier: Apache-2.0
// A sum with terms only at every n-th place of its own axis runs over those places.
//
//   let y[r < 4] : f32 = sum[i < N] where((i + 1 - r) % 2 == 0 and .., x[(i + 1 - r) / 2], 0.0)
// becomes
//   let y[r < 4] : f32 =
//     sum[i.step < (N + 1) / 2] where(2 * ((2 - r) / 2 + i.step) + r - 1 < N and ..,
//                                     x[(2 - r) / 2 + i.step], 0.0)
//
// For sums of finite factors that are no products of matrices, whose places split_residues divides
// into classes, and not along short axes, which are unrolled. Exactness class: exact over the reals
// (only terms that are 0 are dropped). Test: test/spec/stride_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> stride_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
