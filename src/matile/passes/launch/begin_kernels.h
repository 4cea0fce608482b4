// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Kernels with others in front of them begin before those have ended, and wait before they read.
//
//   kernel Z_2                          kernel Z_2 begins early reads ordered
//     ...                        ->       ...
//   launch Z grid n                     launch Z grid n
//   launch Z_2 grid m                   launch Z_2 grid m
//
// Why: the kernel in front hides the time until the CTAs start, and their work before the wait.
// Its reads are ordered: behind the wait. A line `begin late` of the kernel says otherwise.
//
// Test: test/matile/passes/begin_kernels.matile.
std::optional<ir::Program> begin_kernels(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
