// SPDX-License-Identifier: Apache-2.0
// Sums with terms only at every n-th place of an axis are divided into sums over those places: the
// classes of residues of transposed convolutions with a step.
//
//   let y[f < F, i < 2 * H] : f32 =
//     sum[c < C, r < 4] w[c, f, r] * where((i + 1 - r) % 2 == 0 and .., x[c, (i + 1 - r) / 2], 0.0)
// becomes
//   let y.classes[f < F, r.class < 2, i.step < H + 1] : f32 =
//     sum[c < C, r.step < 2] w[c, f, 2 * r.step + r.class] * where(.., x[c, i.step - r.step], 0.0)
//   let y[f < F, i < 2 * H] : f32 = y.classes[f, (i + 1) % 2, (i + 1 - (i + 1) % 2) / 2]
//
// Classes with equally many terms are one sum with an axis of classes; there are at most two such
// sums for an axis. Only for contractions: each class runs on the matrix unit, while a test of each
// term would be scalar code. Where i.step is outside y, reads get tests of their own. Exactness
// class: exact over the reals (only terms that are 0 are dropped). Test:
// test/spec/split_residues.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> split_residues(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
