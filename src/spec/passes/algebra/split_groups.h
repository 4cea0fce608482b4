// SPDX-License-Identifier: Apache-2.0
// An axis that one operand of a product has as the number of its group alone becomes two axes, the
// group and the place in it: the sum is a product of matrices for each group.
//
//   let y[f < G * F, i < N] : f32 = sum[c < C] w[f, c] * x[f / F * C + c, i]
// becomes
//   let y.groups[f.group < G, f.place < F, i < N] : f32 =
//     sum[c < C] w[f.group * F + f.place, c] * x[f.group * C + c, i]
//   let y[f < G * F, i < N] : f32 = y.groups[f / F, f % F, i]
//
// As it was, no operand of a grouped convolution has an axis that the other one has not: x has f,
// too. Only sums that are no contraction and become one, and only axes that are whole groups. A
// tensor that nobody asked for is read as groups. Exactness class: exact. Test:
// test/spec/split_groups.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> split_groups(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
