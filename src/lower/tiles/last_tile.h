// SPDX-License-Identifier: Apache-2.0
// What follows the parts of a split axis, in the kernel of the parts: the tile that comes last puts
// them together.
//
//   kernel attention                                kernel attention
//     ...                                             ...
//     each t in T                                     each t in T
//       ...                                             ...
//       put i < 64 : m.parts[s, i] = ...                put i < 64 : m.parts[s, i] = ...
//   kernel m_kernel                       becomes       ticket last = done[...] of n
//     points i < M                                      if last
//       value m : f32 = -inf                              loop c from 0 up ...
//       loop s from 0 up n                                  set m[x < 128] = -inf
//         assign m = max(m, m.parts[s, i])                  loop v from 0 up (n + 7) / 8
//       write M[i] = m                                        unroll u < 8
//                                                               set m[x < 128] = where(..., max(
//                                                                 m[x], m.parts[min(8 * v + u, ..),
//                                                                 ...]), m[x])
//                                                           put x < 128 : M[...] = m[x] when ...
//
// Nothing is derived here: the points' expressions are taken as they are, at the elements that the
// tile holds of the parts. Those are spread over the threads of the group one by one. Reductions
// that do not need each other share a loop over the parts, whose loads are independent. A group has
// its own counter; ticket leaves it 0. Tests: test/lower/last_tile.scalar, test/kernels/last_tile*
#pragma once

#include <map>
#include <optional>

#include "decision/grid_lines.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/kernel/point_answers.h"
#include "target/target.h"

namespace nautilus::lower {

// How much of the parts the last tile has at once: what a line asks for, if one does, or else the
// rules say, and what was taken.
struct LastTileChoice {
  PointAnswers& rules;
  std::optional<decision::LastTile> asked = {};
  decision::LastTile taken = {};
  std::string refused = {};  // why it cannot be followed
};

// The program around the two kernels.
struct LastTileScope {
  const std::map<std::string, ir::TensorType>& buffers;
  const target::Target& target;
  FreshNames& names;
  expr::ExprPool& pool;
};

// `kernel` puts the parts, `points` is the kernel of scalar code that reads them. Nothing, and why,
// if the last tile cannot do its work.
std::optional<LoweredKernel> combine_in_last_tile(const LoweredKernel& kernel,
                                                  const LoweredKernel& points,
                                                  const LastTileScope& scope,
                                                  LastTileChoice& choice, std::string* why);

}  // namespace nautilus::lower
