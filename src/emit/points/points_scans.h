// SPDX-License-Identifier: Apache-2.0
// A round of a walk is scanned: in the registers of a thread, across the lanes of a warp by
// exchanges, across the vectors of a warp, and across the warps of a CTA through shared memory.
#pragma once

#include "emit/points/points_walks.h"

namespace nautilus::emit {

// Text of what a number has that does not exist.
std::string scan_identity(PointsScope& scope, const matile::LaneScan& s);
void scan_round(PointsScope& scope, WalkText& walk, const matile::LaneLoop& w,
                const matile::LaneScan& s);

}  // namespace nautilus::emit
