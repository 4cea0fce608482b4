// SPDX-License-Identifier: Apache-2.0
// Values that are known only when a reduction is through.
#pragma once

#include "spec/facts/values.h"

namespace nautilus::spec {

// Whether a value is known only when reductions over axes of these extents are.
bool waits_for(expr::Expr e, const std::vector<expr::Expr>& extents, const Equations& equations);

}  // namespace nautilus::spec
