// SPDX-License-Identifier: Apache-2.0
// The lines of kernels of points and parts that their lowering reads, as far as the schedule and
// choose_kernels do not say them; also of kernels that are not named, such as those of parts.
//
//   kernel y points           ->           kernel y points
//     each 4                                 each 4
//                                            lanes 1; unroll 16; threads 128
//
// Which of them a kernel has, its lowering says itself: it runs once with the rules as its answers
// (point_rules.h). What the last tile of a kernel takes is not known before that is lowered: those
// statements have no kernel here. Test: test/choose/point_lines.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Nothing if a line of theirs is refused, as their lowering would.
std::optional<ir::Program> choose_point_lines(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose
