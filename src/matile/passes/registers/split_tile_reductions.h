// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Whole reductions as what each thread, each warp and each group does.
//
//   reduce m[i < 64] = max[j < 80] S[i, j]    ->    fold m[i < 64] = max[j < 80] S[i, j]
//                                                   lanes m max
//
// The digits of the reduced axis say which parts there are (layout::drop_axis): registers are the
// thread part (`fold`), lanes the second (`lanes`), warps the third (`warps`).
//
// Needs nest form with spread layouts, keeps it. Refused (and reported): a reduction that is not
// the whole value, or whose tile is not read with exactly its axes. Test:
// test/matile/passes/split_tile_reductions.matile.
std::optional<ir::Program> split_tile_reductions(const ir::Program& program,
                                                 ir::PassContext& context);

}  // namespace nautilus::matile
