// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Layouts of register tiles, from the ops that fix them.
//
//   tile S : f32[64, 80]                      tile S : f32[64, 80] acc
//   tile m : f32[64]                          tile m : f32[64] row
//   dot S init qs, ks trans            ->     dot S init qs, ks trans
//   reduce m[i < 64] = max[j < 80] S[i, j]    reduce m[i < 64] = max[j < 80] S[i, j]
//
// Tiles of two dimensions have the layout of the matrix unit's accumulator, which is also that of
// its register operand. A tile of one dimension follows the axis of such a tile that it is used
// along: rows or columns. Tiles that are used only with each other follow the first of them that is
// known. Where a tile is needed along both, a `convert` comes before the use that differs from its
// first one, or after it if the tile is written there; its way follows from the layouts
// (layout::convert_kind).
//
// Needs nest form, keeps it. Refused (and reported): shapes that no layout has. Test:
// test/matile/passes/spread_layouts.matile.
std::optional<ir::Program> spread_layouts(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
