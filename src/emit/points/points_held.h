// SPDX-License-Identifier: Apache-2.0
// Loops with the same number of turns, which is small when the kernel runs: elements that several
// of them read are loaded once, all turns at a time, and stay in registers.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The block where loops have few turns, and as it is where they have more.
void write_held(PointsScope& scope, const ir::Block& ops);
// Whether it is one of those loops; while the block holds their elements, such a loop finds them.
bool is_held_loop(const matile::Loop& l);
void write_held_loop(PointsScope& scope, const matile::Loop& l);

}  // namespace nautilus::emit
