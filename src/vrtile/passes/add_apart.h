// SPDX-License-Identifier: Apache-2.0
// Products of a step begin at 0 and are added to the sum of a loop in registers, in f32: the matrix
// unit adds to a large sum with few digits.
//
//   for k from 0 up K / 128
//     carry c : f32[64, 128] from c_init next c_next
//     dot c_next : f32[64, 128] = a, b trans onto c
// becomes
//   for k from 0 up K / 128
//     carry c : f32[64, 128] from c_init next c_next
//     dot c_step : f32[64, 128] = a, b trans
//     set c_next[i < 64, j < 128] = c[i, j] + c_step[i, j]
//
// By rule for operands whose sums are too coarse otherwise (`apart_depth` of the target), for which
// nothing else is allowed; the line `add apart` asks for it. Exactness class: the same sum in
// another order. Test: test/vrtile/add_apart.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> add_apart(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile
