// SPDX-License-Identifier: Apache-2.0
// How many runs a row has (run_kernels.h), and how long those are that the last kernel merges:
// scalars of the plan where the length of rows is open.
#pragma once

#include "lower/places/sort_nests.h"
#include "lower/points/points_alternatives.h"

namespace nautilus::lower {

// Elements of a run that are kept, of so many: a power of two.
int64_t kept_of_run(const SortNests& nests, const std::set<std::string>& kept, int64_t run,
                    expr::ExprPool& pool);

// Runs of a row while they become fewer and longer.
struct Runs {
  expr::Expr length;
  expr::Expr count;
  expr::Expr half;  // of the tensors, that they are in
};

struct RunPlan {
  ir::Block scalars;
  expr::Expr runs;         // of a row, when lanes have put them in order
  Runs last;               // those that the last kernel merges
  bool has_empty = false;  // rows may have fewer elements than places: some runs have none
};

struct RunRequest {
  const PointsContext& points;
  const SortNests& nests;
  const std::string& stem;  // of names
  int64_t run = 0;          // elements that lanes put in order
  int64_t pairs = 0;        // kernels that merge pairs of runs
};

// Kernel `step` of those merges pairs where it leaves more than one run.
expr::Expr are_pairs_merged(expr::Expr runs, int64_t step, expr::ExprPool& pool);

RunPlan run_plan(const RunRequest& request, expr::Expr is_longer, expr::ExprPool& pool);

}  // namespace nautilus::lower
