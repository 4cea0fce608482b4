// SPDX-License-Identifier: Apache-2.0
// CTAs of a kernel that scatters have copies of the result in shared memory:
//
//   points n < N                          layout
//     scatter H[x[n]] sum 1     becomes     private on
//   launch grid (N + 127) / 128           points n < N
//                                           scatter H[x[n]] sum 1
//                                         launch grid min((N + 127) / 128, sms * 16)
//
// There are as many CTAs as the machine has at a time, and each takes one block of points after the
// other. Terms meet in shared memory, which is faster for few elements than the second-level cache,
// where all threads of the machine would meet.
//
// Test: test/lower/own_results.naut
#pragma once

#include <map>
#include <string>

#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// Whether a tensor's extents are known, and its elements few enough.
bool may_be_own(const ir::TensorType& type, const target::Target& target);

// Why it cannot be; empty if it was done. `machine`: the number of multiprocessors.
std::string own_results(LoweredKernel& parts, const std::map<std::string, ir::TensorType>& buffers,
                        const target::Target& target, int64_t ctas, ir::Name machine,
                        expr::ExprPool& pool);

}  // namespace nautilus::lower
