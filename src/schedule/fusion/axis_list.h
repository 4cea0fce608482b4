// SPDX-License-Identifier: Apache-2.0
// Lists of axes.
#pragma once

#include <algorithm>
#include <vector>

#include "expr/expr.h"

namespace nautilus::schedule {

inline bool contains(const std::vector<expr::Expr>& axes, expr::Expr axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace nautilus::schedule
