// SPDX-License-Identifier: Apache-2.0
// Rows that are longer than lanes hold (sort_kernel.h), in two kernels: lanes put runs of a row in
// order, and threads find the place of each element of a run among those of all others.
//
//   let runs = (N + 8191) / 8192
//   kernel Y_run_kernel
//     layout
//       lanes 1024
//       threads 1024
//     points i < M, run < runs
//       sort j < 8192 each 8 smallest X[i, run * 8192 + j] when .. place place to 8192
//         write Y_sorted[i, run * 8192 + place] = X[i, run * 8192 + j]
//         write Y_index[i, run * 8192 + place] = i32(run * 8192 + j)
//   kernel Y_kernel
//     points i < M, at < runs * 8192
//       let run = at / 8192
//       value ahead : i64 = at - run * 8192
//       loop other from 0 up runs
//         if other != run
//           search before < 8192 while Y_sorted[i, other * 8192 + before] < ..
//           assign ahead = ahead + before
//       if ahead < N
//         let place = ahead
//         let j = i64(Y_index[i, at])
//         write Y[i, place] = X[i, j]
//
// Before, kernels may merge pairs of runs, from one half of the tensors to the other: the work of
// the last kernel grows with the number of runs. Of equal elements the one of the first run comes
// first, as runs are pieces of the row. A run keeps only as many elements as places are asked for.
// Elements without a place are last in their run, and come behind all others with one. Tests:
// test/lower/sort_runs.scalar, emulate_runs.matile
#pragma once

#include "lower/kernel/point_answers.h"
#include "lower/places/run_plan.h"
#include "lower/points/points_alternatives.h"

namespace nautilus::lower {

struct RunShape {
  SortShape sort;  // of a run
  decision::Merge merge;
};

// An alternative of the form sort.
struct SortKernel {
  std::vector<LoweredKernel> front;  // those that it needs: they put runs in order, and merge pairs
  LoweredKernel kernel;
  ir::Block read_last;  // of its lines, those that are read when all kernels are known
};

// The kernel that sorts is in front of the one that merges. `is_longer`: that rows are long enough;
// null: they are.
SortKernel run_kernels(const PointsContext& points, const SortNests& nests, const RunShape& shape,
                       expr::Expr is_longer, expr::ExprPool& pool);

}  // namespace nautilus::lower
