// SPDX-License-Identifier: Apache-2.0
// An axis that one operand of a product reads only as the number of its group becomes two axes, the
// group and the place in it: the sum is a product of matrices for each group.
//
//   let y[f < G * F, i < N] : f32 = sum[c < C] w[f, c] * x[f / F * C + c, i]
// becomes
//   let y.groups[f.group < G, f.place < F, i < N] : f32 =
//     sum[c < C] w[f.group * F + f.place, c] * x[f.group * C + c, i]
//   let y[f < G * F, i < N] : f32 = y.groups[f / F, f % F, i]
//
// Before, no operand of a grouped convolution has an axis that the other lacks: x has f, too. Only
// for sums that become a contraction by it, and only for axes of whole groups. Readers of a tensor
// that is not an output read its groups. Exactness class: exact. Test: test/spec/split_groups.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> split_groups(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
