// SPDX-License-Identifier: Apache-2.0
// Scans: equations that need each other at the previous step. They are computed step by step, and
// within a step in the order of the program.
//
//   state S : f32[T, D] along 0
//   let U[t < T] : f32 = v[t] - sum[d < D] k[t, d] * where(t >= 1, S[t - 1, d], 0.0)
//   let S[t < T, d < D] : f32 = where(t >= 1, S[t - 1, d], 0.0) + k[t, d] * U[t]
//
// The equations of a scan are found from their reads, so passes that add equations need not know
// about scans.
#pragma once

#include <unordered_set>
#include <vector>

#include "spec/ops.h"

namespace nautilus::spec {

// Equations that are computed together: one, or those of a scan.
struct EquationGroup {
  std::vector<const ir::Op*> equations;
  // Of a scan: the axis of each equation along which it runs, and how.
  std::vector<size_t> along;
  Direction direction = Direction::Up;

  bool is_scan() const { return !along.empty(); }
};

// All equations, each after those that it reads.
std::vector<EquationGroup> computing_order(const ir::Program& program);

bool has_scans(const ir::Program& program);
// Names of the equations of scans.
std::unordered_set<ir::Name> scanned_tensors(const ir::Program& program);

}  // namespace nautilus::spec
