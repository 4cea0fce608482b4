// SPDX-License-Identifier: Apache-2.0
// A scan with a matrix as state and all its readers, as chunk_scans needs them:
//
//   S[t, d, e] = a[t] * S[t - 1, d, e] + k[t, d] * u[t] * v[t, e]
//   O[t, e] = sum[d] q[t, d] * S[t, d, e]                 a reader: d is its depth, k the keys
//   F[d, e] = S[T - 1, d, e]                              the last state
#pragma once

#include <unordered_map>

#include "spec/facts/affine_scan.h"

namespace nautilus::spec {

// An equation that sums products with the state along one of its axes.
struct ScanReader {
  const Let* let = nullptr;
  size_t steps = 0;          // the axis of the equation along which the scan runs
  ir::Expr depth;            // the axis of its sum
  std::vector<ir::Expr> q;   // factors other than the state
  bool is_before = false;    // reads the state that a step begins with
  std::vector<ir::Expr> at;  // indices of the state
};

struct ReadScan {
  const Let* let = nullptr;
  AffineScan step;
  size_t depth = 0;         // the axis of the state that readers sum
  size_t column = 0;        // the axis that only the other side of the term has
  std::vector<ir::Expr> k;  // factors of the term that have the depth
  std::vector<ir::Expr> u;  // factors with neither the depth nor an axis of their own
  std::vector<ir::Expr> v;  // the others
  std::vector<ScanReader> readers;
  bool has_last = false;             // some equation reads the last state
  ir::DType half = ir::DType::BF16;  // the dtype that operands are rounded to
};

// Refused with the reason where chunks cannot be computed by products of matrices.
algebra::Outcome<ReadScan> read_scan(const EquationGroup& scan, const ir::Program& program,
                                     expr::ExprPool& pool);

// Whether the index is that of the last step.
bool is_last_step(ir::Expr index, ir::Expr extent);

}  // namespace nautilus::spec
