// SPDX-License-Identifier: Apache-2.0
// Kernels of scalar code whose reductions are fast: what nests side by side leave to do.
#pragma once

#include <optional>

#include "decision/row_and_point_lines.h"
#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// Loops over the same numbers become one, if neither needs what the other computes:
//
//   value a : i64 = 0                   value a : i64 = 0
//   loop k from 0 up K                  value b : i64 = 0
//     assign a = a + X[i, k]            loop k from 0 up K
//   write A[i] = a              ->        assign a = a + X[i, k]
//   value b : i64 = 0                     assign b = max(b, X[i, k])
//   loop k_2 from 0 up K                write A[i] = a
//     assign b = max(b, X[i, k_2])      write B[i] = b
//   write B[i] = b
//
// What the later loop needs goes before the earlier one. Exact. Tests:
// test/lower/points_loops.scalar
ir::Block join_loops(const ir::Block& body, expr::ExprPool& pool);

// Lanes of a warp for each point of a kernel all of whose loops are reductions:
//
//                                       layout
//                                         lanes 32
//   points i < M                        points i < M
//     value a : i64 = 5                   value a : i64 = 5
//     loop k from 0 up K                  value a_lane : i64 = 0
//       assign a = a + X[i, k]    ->      share k up K
//     write A[i] = a                        assign a_lane = a_lane + X[i, k]
//                                         join a_lane sum
//                                         assign a = a + a_lane
//                                         write A[i] = a
//
// Neighbouring lanes take neighbouring turns. Sums of floats are taken in another order:
// exact over the reals. False, and the kernel as it was, if its loops are not all reductions of
// values that are independent of each other, nor a scan whose steps a warp can take together
// (scan_lines.h). `threads`: of a CTA, here and below.
bool share_lanes(LoweredKernel& parts, int64_t lanes, int64_t threads, const target::Limits& limits,
                 FreshNames& names, expr::ExprPool& pool);

// Gives every thread a line of so many points along the last axis, fewer at its end. False, and the
// kernel as it was, if lanes share its points, if these branch, or write in a loop.
bool widen(LoweredKernel& parts, int64_t each, int64_t threads, expr::ExprPool& pool);

// Gives every thread of a kernel of lines points along another axis, too, and every CTA a tile of
// the two axes:
//
//   layout                               layout
//     each 8 ragged                        each 8 ragged
//   points h < H, w < W, c < C     ->      across w 4 lines 8
//     write y[h, w, c] = x[c, h, w]      points h < H, w < W, c < C
//                                          write y[h, w, c] = x[c, h, w]
//
// Elements of x are then loaded in vectors along w, those of y stored in vectors along c. False,
// and the kernel as it was, if it is none of lines, loops or branches, or has no such axis.
bool widen_across(LoweredKernel& parts, const decision::Across& line, int64_t threads,
                  expr::ExprPool& pool);

// Whether it is the steps of a scan: what they write is no line of points. A loop that only writes
// is.
bool is_writing_loop(const ir::Op& op);

// Gives every CTA a tile of the last two axes, and its threads several points of it:
//
//   points i < M, j < N                  layout
//                                          spread 64 apart 2 down 4
//                                        points i < M, j < N
//
// 64 threads are neighbours along j, which have points j and j + 64, and two of them along
// i, with points i to i + 3: neighbours read neighbours, what is above each other is loaded once,
// and the place of the tile is found out once. A kernel of lines has lines in place of points along
// j, one apart, and no loops. False, and the kernel as it was, if lanes share its points, if these
// branch, write in a loop or walk loops of different lengths.
bool spread(LoweredKernel& parts, const decision::Spread& line, int64_t threads,
            expr::ExprPool& pool);

// Loops of a point that have the same number of turns, of which it is not known: where it is at
// most `turns`, elements that several of them read stay in registers. False, and the kernel as it
// was, if there are no two such loops.
bool hold(LoweredKernel& parts, int64_t turns);

// How many parts the loops of a kernel that puts parts together walk over; null if its loops have
// other numbers of turns.
expr::Expr parts_of(const LoweredKernel& one);

// For a kernel that puts the parts of an axis together, another one with `lanes` for each point,
// for sizes with many parts and few points (parts_by_sizes.h).
//
// Points are neighbours in memory, parts are not: with 8 lanes 4 points in a warp still read half a
// sector at once, and the time is that of the loads one after the other, of which there are 8 times
// fewer. Nothing if its loops are not all reductions over the parts.
std::optional<LoweredKernel> share_parts(const LoweredKernel& one, int64_t lanes, int64_t threads,
                                         FreshNames& names, expr::ExprPool& pool);

// For a kernel that puts the parts of an axis together, another one whose threads have `each`
// points beside each other, for sizes with points so many that instructions, most of them for
// places, are what takes the time. Nothing if its points branch or leave a rest.
std::optional<LoweredKernel> widen_points(const LoweredKernel& one, int64_t each, int64_t threads,
                                          FreshNames& names, expr::ExprPool& pool);

}  // namespace nautilus::lower
