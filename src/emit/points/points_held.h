// SPDX-License-Identifier: Apache-2.0
// Loops with the same number of turns, which is small when the kernel runs: elements that several
// of them read are loaded once, all turns at a time, and stay in registers.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The block where loops have few turns, and as it is where they have more.
void write_held(PointsScope& scope, const ir::Block& ops);
// One of the loops that hold (matile/windows.h), while the block has their elements.
void write_held_loop(PointsScope& scope, const matile::Loop& l);

}  // namespace nautilus::emit
