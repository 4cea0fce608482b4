// SPDX-License-Identifier: Apache-2.0
// Values that are known only after a reduction.
#pragma once

#include "spec/facts/values.h"

namespace nautilus::spec {

// Whether a value is known only after reductions over axes of these extents.
bool waits_for(expr::Expr e, const std::vector<expr::Expr>& extents, const Equations& equations);

// Tensors with elements that are reductions, or that are computed from those.
std::unordered_set<ir::Name> waiting_tensors(const ir::Program& program);

}  // namespace nautilus::spec
