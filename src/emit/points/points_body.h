// SPDX-License-Identifier: Apache-2.0
// The statements of a kernel of scalar code, written more than once where some threads can do with
// less: those whose points are all inside, whose vectors are whole, whose tensors lie along memory.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

void write_body(PointsScope& scope, const ir::Block& ops);

}  // namespace nautilus::emit
