// SPDX-License-Identifier: Apache-2.0
// A long reduction with few results, in two steps: parts of it in parallel, then the parts.
//
//   for j < N map                      for c < 64, j < N map
//     init s[j] = 0.0                    init s_parts[c, j] = 0.0
//     for i < M reduce         becomes   for k < (M + 63) / 64 reduce
//       update s[j] sum X[i, j]            update s_parts[c, j] sum where(64*k + c < M, X[64*k + c,
//       j], 0.0)
//                                      for j < N map
//                                        init s[j] = 0.0
//                                        for c < 64 reduce
//                                          update s[j] sum s_parts[c, j]
//
// Neighbouring parts take neighbouring elements, so that threads read consecutive memory. Only
// where each element is read once: a contraction has other ways to be parallel. Tests:
// test/lower/split.naut
#pragma once

#include <optional>

#include "decision/decisions.h"
#include "lower/points/points_kernel.h"

namespace nautilus::lower {

struct SplitReduction {
  ir::Name axis;      // whose terms are in parts
  int64_t parts = 1;  // how many
  ir::Name buffer;    // of the parts
  ir::TensorType type;
  MapNest partial;
  MapNest final;
  expr::Expr condition;  // on sizes: where the line says so; null if everywhere
};

// The axis of a reduction that can be in parts; empty if there is none.
ir::Name splittable_axis(const MapNest& nest, const std::map<std::string, ir::TensorType>& buffers,
                         expr::ExprPool& pool);

// As the line says. Nothing if the reduction is known to have fewer terms than parts.
std::optional<SplitReduction> split_reduction(const MapNest& nest,
                                              const std::map<std::string, ir::TensorType>& buffers,
                                              const decision::Split& line, FreshNames& names,
                                              expr::ExprPool& pool);

}  // namespace nautilus::lower
