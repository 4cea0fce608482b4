// SPDX-License-Identifier: Apache-2.0
// Integers that are read for a whole tile of the grid, as scalars.
//
//   for b < B, i0 < T grid                           let end = i64(last[b, i0])
//     loop j0 from 0 up i64(last[b, i0])     ->      loop j0 from 0 up end
//       ... where(80 * j0 + j < ...)                   ...
//
// How far a loop runs may be read from memory. Every role of a kernel has to know it, so that it is
// no tile but a number that is read once; the same reads in the conditions of masks become the same
// numbers, which segments can then be cut by. Warp groups may have numbers of their own. Numbers
// that change from step to step, `list[i0, j0]`, are read at the beginning of the step.
#pragma once

#include <unordered_map>

#include "expr/bounds/bounds.h"
#include "ir/op.h"
#include "vrtile/names.h"

namespace nautilus::lower {

struct TileNumbers {
  ir::Block lets;        // of the tile level
  ir::Block group_lets;  // those of each warp group
  ir::Block step_lets;   // those of each step of the loop
  ir::Op nest;           // a grid loop of the scalar level that reads them
};

// The nest as it is if no loop in it depends on memory. `facts` know the sizes.
TileNumbers read_tile_numbers(const ir::Op& nest,
                              const std::unordered_map<ir::Name, ir::TensorType>& types,
                              expr::Facts facts, vrtile::Names& names, expr::ExprPool& pool);

}  // namespace nautilus::lower
