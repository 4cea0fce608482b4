// SPDX-License-Identifier: Apache-2.0
// Whether a fusion is legal as a kernel, and what has to leave it if it is not.
#pragma once

#include <string_view>

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// Why a reduction other than a sum of products starts no tile kernel. Reports about products
// without a tile kernel leave this reason out, because it is not about a product.
inline constexpr std::string_view kNoProduct = "it is no product of matrices";

struct FusionCheck {
  bool is_ok = true;
  std::string code;
  std::string message;
  std::vector<int> outside;  // statements to leave out before trying again; empty: give up
  bool is_cut = false;       // the seed needs them: they become an earlier pass
};

// Sets the fusion's row axis and its dots. `row`: the axis asked for, or null.
FusionCheck check_fusion(Fusion& fusion, const StatementList& list, const ir::Program& program,
                         Expr row, const algebra::Signs& signs, expr::ExprPool& pool);

}  // namespace nautilus::schedule
