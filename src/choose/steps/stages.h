// SPDX-License-Identifier: Apache-2.0
// A reduction over several axes in two steps, some of its axes first:
//
//   for c < C map                                    for n < N, c < C, h < H map
//     init s[c] = 0.0                                  init s_parts[n, c, h] = 0.0
//     for n < N, h < H, v < W reduce      becomes      for v < W reduce
//       update s[c] sum X[n, c, h, v]                    update s_parts[n, c, h] sum X[n, c, h, v]
//                                                    for c < C map
//                                                      init s[c] = 0.0
//                                                      for n < N, h < H reduce
//                                                        update s[c] sum s_parts[n, c, h]
//
// The first step has a point for each place of the other axes, so that it fills the machine even if
// the reduction has few results. Its axes are in the memory order of the tensor, so that a
// contiguous axis is a row. Sums of floats are computed in another order: exact over the reals.
// Tests: test/choose/stages.naut
#pragma once

#include <optional>
#include <vector>

#include "lower/points/points_kernel.h"

namespace nautilus::choose {

struct Stages {
  ir::Name buffer;  // of the first step's results
  ir::TensorType type;
  lower::MapNest first;
  lower::MapNest rest;
};

// The axes of a nest that is one reduction over several axes and reads each element once, by
// decreasing stride of the tensor that it reads. Empty for other nests.
std::vector<ir::Name> axes_in_memory(const lower::MapNest& nest,
                                     const std::map<std::string, ir::TensorType>& buffers,
                                     expr::ExprPool& pool);

// The steps with `inner`, some of the reduction's axes, first. Nothing if the nest cannot have such
// steps.
std::optional<Stages> stages(const lower::MapNest& nest, const ir::Names& inner,
                             const std::map<std::string, ir::TensorType>& buffers,
                             lower::FreshNames& names, expr::ExprPool& pool);

}  // namespace nautilus::choose
