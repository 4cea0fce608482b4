// SPDX-License-Identifier: Apache-2.0
// How often a tile fetches a slot tile, whatever loops its fetches are in:
//
//   loop c from 0 to nc             nc * 3
//     fetch x from X[t]
//     fetch x from X[t + 1]    ->
//     fetch x from X[t + 2]
#pragma once

#include <string_view>

#include "expr/expr.h"
#include "matile/ops.h"

namespace nautilus::matile {

// In terms of the scalars in front of the loops; null if a loop's length depends on another loop's
// variable, or a condition decides about fetches.
expr::Expr fetch_count(const ir::Block& block, std::string_view slot_tile, expr::ExprPool& pool);

}  // namespace nautilus::matile
