// SPDX-License-Identifier: Apache-2.0
// Whether a value is one of those that an element of another tensor is the maximum or sum of.
#pragma once

#include <unordered_map>

#include "spec/facts/values.h"

namespace nautilus::spec {

// `read`: an element of the tensor. `extents`: of the axes that `e` has.
bool is_reduced_by(expr::Expr read, expr::Reducer reducer, expr::Expr e, const Equations& equations,
                   const std::unordered_map<expr::Expr, expr::Expr>& extents, expr::ExprPool& pool);

}  // namespace nautilus::spec
