// SPDX-License-Identifier: Apache-2.0
// A fusion written as a scheduled nest: tiles of a grid, warp groups, steps along the streamed
// axis.
//
//   for i < M map                                   for i0 < (M + 127) / 128 grid
//     init m[i] = -inf                                for w < 2 group
//     for j < N reduce                                  for i < 64 map
//       update m[i] max T[i, j]                           init m[i] = -inf
//   for i < M map                             becomes   loop j0 from 0 up (N + 79) / 80
//     init l[i] = 0.0                                     ... mt = max of the tile,
//                                                         m.new = max(m, mt)
//     for j < N reduce                                    store repair[i] = exp2(m[i] - m.new[i])
//       update l[i] sum exp2(T[i, j] - m[i])              store l[i] = l[i] * repair[i]
//                                                         update l[i] sum exp2(T[i, j] - m.new[i])
//                                                         store m[i] = m.new[i]
//
// The result is an ordinary program: the scalar interpreter runs it. Exactness class: exact over
// the reals, and equal to the definition where no partial sum overflows.
#pragma once

#include "schedule/nest/split.h"

namespace nautilus::schedule {

// A nest without parts: one of several that compute the same.
struct WholeNest {
  size_t nest = 0;  // its place among the kernel's nests
  TileConfig sizes;
  Expr row_tile;         // the grid axis that numbers tiles of rows
  bool is_once = false;  // its first axis says whether it runs at all
};

struct BuiltKernel {
  ir::Block sizes;                        // that the plan computes
  std::vector<scalar::Buffer> locals;     // and temporaries between the nests
  std::vector<scalar::Buffer> summaries;  // buffers that `before` writes and the nests read
  ir::Block before;                       // statements that run before the nests
  ir::Block nests;
  std::vector<WholeNest> wholes;
  std::vector<ir::Block> decided;    // about each grid nest, in their order
  std::optional<Rejection> refused;  // a line of the schedule that cannot be followed
  std::vector<std::string> notes;    // what was done, for people
};

// `others`: sizes of further nests for the same results; where the first has parts, of nests
// without. `stored`: members with values that go to memory. `names`: names in use; those of the
// locals are added.
BuiltKernel build_kernel(const FusionScope& scope, const TileConfig& sizes,
                         const std::vector<TileConfig>& others, const Split& split,
                         const std::set<int>& stored, Names& names);

// The same with one nest, without parts.
BuiltKernel build_whole_kernel(const FusionScope& scope, const TileConfig& sizes,
                               const std::set<int>& stored, Names& names);

// Statements outside the fusion that a kernel reads if it stores these members.
std::set<int> needs_of(const Fusion& fusion, const StatementList& list,
                       const std::set<int>& stored);

}  // namespace nautilus::schedule
