// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Splits whole reductions into the work of each thread, each warp and each group.
//
//   reduce m[i < 64] = max[j < 80] S[i, j]    ->    fold m[i < 64] = max[j < 80] S[i, j]
//                                                   lanes m max
//
// The digits of the reduced axis say which of these there are (layout::drop_axis): registers are
// the thread part (`fold`), lanes the second (`lanes`), warps the third (`warps`).
//
// Needs nest form with spread layouts, keeps it. Refused (and reported): a reduction that is not
// the whole value, or reads its tile at other indices than its axes. Test:
// test/matile/passes/split_tile_reductions.matile.
std::optional<ir::Program> split_tile_reductions(const ir::Program& program,
                                                 ir::PassContext& context);

}  // namespace nautilus::matile
