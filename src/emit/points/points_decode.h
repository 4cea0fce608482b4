// SPDX-License-Identifier: Apache-2.0
// The first lines of a kernel of scalar code: which points the thread has, by the number of its CTA
// and its own. That does not take memory: it is found out while kernels in front still run.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// `is_early`: the kernel may begin before those in front of it have ended.
void decode_grid(PointsScope& scope, bool is_early);

}  // namespace nautilus::emit
