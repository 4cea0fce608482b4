// SPDX-License-Identifier: Apache-2.0
// Statements of a kernel of scalar code; what is more than a few lines of text has a file of its
// own.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The names of a block, and what is known of them, end with it.
void write_block(PointsScope& scope, const ir::Block& ops);

}  // namespace nautilus::emit
