// SPDX-License-Identifier: Apache-2.0
// The lanes of a point put its row in order (matile::Sort, prelude/sort.h): each makes keys of
// its elements; the indices of sorted keys pass through shared memory, so that neighbouring lanes
// have neighbouring places. Test: test/matile/emit_sort.matile
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

void write_sort(PointsScope& scope, const matile::Sort& order);

}  // namespace nautilus::emit
