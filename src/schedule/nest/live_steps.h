// SPDX-License-Identifier: Apache-2.0
// The steps that a mask on data leaves, found by small statements that run before the kernel.
//
//   mask doc[b, i] == doc[b, j], tiles of 64 rows, steps of 80 keys
//
//   for b < B, i0 < (M + 63) / 64 map              the extremes of each side, tile by tile
//     init doc.least[b, i0] = ...
//     for i < 64 reduce
//       update doc.least[b, i0] min where(64 * i0 + i < M, i64(doc[b, 64 * i0 + i]), ...)
//   ...
//   for b < B, i0 < (M + 63) / 64 map              the first step in which the mask may hold
//     init j.first[b, i0] = i32(steps - 1)
//     for j0 < steps reduce
//       update j.first[b, i0] min where(may hold, i32(j0), i32(steps - 1))
//   ...                                            the number after the last, and the range of
//                                                  steps in which it holds everywhere
//
// Warp groups that share a tile have numbers of their own, `i0_group < (M + 127) / 128 * 2`: fewer
// rows need fewer steps, and only a group that straddles a border has no step without the mask. The
// loaders load the steps that any of the groups needs.
//
// The kernel's loop runs from the first live step to the last; masked steps between them change
// nothing. Exact: a step outside has no point at which the mask holds.
//
// A mask that is given point by point, `keep[i, j]`, may leave any set of steps. They become a
// list: first those that are live in part, then those in which the mask holds everywhere:
//
//   for i0, j0 map
//     store j.state[i0, j0] = 0: nothing, 1: a part, 2: everything
//   ...                                            how many there are, and the place of each
//   for i0, n map
//     init j.list[i0, n] = steps
//     for j0 < steps reduce
//       update j.list[i0, n] min where(j.state[i0, j0] != 0 and j.place[i0, j0] == n, j0, steps)
//
// The kernel's loop counts places of the list, `loop j0 from 0 up j.count[i0]`; the step at a place
// is `j.list[i0, j0]`. All warp groups of the tile share the list. A place after its end is a step
// beyond the axis, where nothing counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

struct LiveSteps {
  std::vector<scalar::Buffer> buffers;
  ir::Block statements;
  Expr first;                    // of the steps, in the kernel's terms; null: nothing was found
  Expr end;                      // one past the last; less than first + 1 if there are none
  std::vector<Expr> conditions;  // that bound them
  // Steps in which all of `settled` hold everywhere; null if these steps are not a range.
  Expr full;
  std::vector<Expr> settled;
  // The number of the step at a place of the list, where the loop counts places; null: it counts
  // steps. `full` then also implies that the step is inside the axis.
  Expr listed;
};

enum class StepsForm : uint8_t { Range, List };

// `conditions` and `bounds`: all must hold for a point to count; `bounds` are those that arithmetic
// can follow. `form`: without it a list if a condition is given point by point, else a range.
LiveSteps live_steps(const FusionScope& scope, const Tiling& tiling,
                     const std::vector<Expr>& conditions, const std::vector<Expr>& bounds,
                     std::optional<StepsForm> form, Names& names);

// Number of tiles of a grid axis, or of steps.
Expr tile_count(const Fusion& fusion, const TileAxis& t, expr::ExprPool& pool);

}  // namespace nautilus::schedule
