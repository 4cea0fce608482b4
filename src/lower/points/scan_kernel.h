// SPDX-License-Identifier: Apache-2.0
// A scan as a kernel of scalar code: a thread for each point of the axes that the steps keep apart,
// which walks along the steps.
//
//   loop t from 0 up T                           kernel H_kernel
//     for i < N map                                points i < N
//       store H[i, t] =                              value H_before : f32 = 0.0
//         where(t >= 1, H[i, t - 1], 0.0)  becomes   loop t from 0 up T
//           + X[i, t]                                  let H_value = where(t >= 1, H_before, 0.0)
//                                                                    + X[i, t]
//                                                      write H[i, t] = H_value
//                                                      assign H_before = H_value
//
// An axis is kept apart if every equation of the scan has it and reads the others at its own place
// along it. Along other axes a thread loops in every step, and states that have them pass through
// memory. Test: test/lower/scans.naut
#pragma once

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// Whether the nest is a loop of steps that need each other.
bool is_scan(const MapNest& nest);

std::optional<LoweredKernel> lower_scan(const MapNest& nest, const std::set<std::string>& kept,
                                        const std::map<std::string, ir::TensorType>& buffers,
                                        FreshNames& names, const target::Points& choice,
                                        ir::PassContext& context);

}  // namespace nautilus::lower
