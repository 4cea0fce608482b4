// SPDX-License-Identifier: Apache-2.0
// Computes a sum with terms that need a number of another sum over the same axes in the steps of
// that sum (stages.h), so that one walk over memory serves both:
//
//   for c < C map                                  for n < N, c < C, h < H map
//     init s[c] = 0.0                                init s_parts[n, c, h] = 0.0 ...
//     for n < N, h < H, v < W reduce               for n < N, c < C, h < H map
//       update s[c] sum X[n, c, h, v]                store q_ref[n, c, h] = s_parts[n, c, h] / W
//   for c < C map                                  for n < N, c < C, h < H map
//     store m[c] = s[c] / (N * H * W)    becomes     init q_parts[n, c, h] = 0.0
//   for c < C map                                    for v < W reduce
//     init q[c] = 0.0                                  update q_parts[n, c, h] sum
//     for n < N, h < H, v < W reduce                       (X[n, c, h, v] - q_ref[n, c, h])^2
//       update q[c] sum (X[n, c, h, v] - m[c])^2   ...
//                                                  for c < C map
//                                                    init q[c] = 0.0
//                                                    for n < N, h < H reduce
//                                                      update q[c] sum q_parts + d * q_parts_d1 +
//                                                      ..
//
// The terms of a part are relative to the number that would result if all parts were like it;
// combining the parts moves them to the final number by d (algebra/moments.h). Exact over the
// reals, and no term is far from its reference. Tests: test/choose/moving_stages.scalar
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "choose/steps/step_scope.h"

namespace nautilus::choose {

struct MovingStages {
  std::vector<std::pair<ir::Name, ir::TensorType>> buffers;
  ir::Name against;                   // the sum that gives the steps
  std::vector<lower::MapNest> first;  // to insert after the first steps of that sum
  lower::MapNest rest;                // in place of the nest
};

// For parts of different lengths, such as pieces of a row with a shorter last one (piece_stages.h):
// which terms of a part exist, their number, and the number of terms of all parts.
struct PresentTerms {
  expr::Expr exists;
  expr::Expr count;
  expr::Expr all;
};

// For the nest at `place`. The sum that gives its number has its steps already, over the axes that
// `inner` leaves. Nothing if the nest cannot have such steps.
std::optional<MovingStages> moving_stages(std::span<const lower::MapNest> nests, size_t place,
                                          const ir::Names& inner, const StepScope& scope,
                                          const PresentTerms* present = nullptr);

}  // namespace nautilus::choose
