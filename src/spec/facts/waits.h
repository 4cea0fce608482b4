// SPDX-License-Identifier: Apache-2.0
// Values that are known only after a reduction.
#pragma once

#include "spec/facts/values.h"

namespace nautilus::spec {

// Whether a value is known only after reductions over axes of these extents.
bool waits_for(expr::Expr e, const std::vector<expr::Expr>& extents, const Equations& equations);

}  // namespace nautilus::spec
