// SPDX-License-Identifier: Apache-2.0
// Kernels that a plan runs one after the other overlap: a kernel lets the next one begin at once,
// and the next one waits before it touches global memory. So the previous kernel hides the work of
// a kernel before that wait, and the time until its CTAs start.
#pragma once

#include "matile/ops.h"

namespace nautilus::emit {

struct LaunchOrder {
  bool is_behind = false;    // another kernel is launched before it
  bool is_followed = false;  // another one is launched after it
};

// By the program's text; at a launch some of the other kernels may have nothing to do, which does
// no harm.
LaunchOrder launch_order(const ir::Program& program, const matile::Kernel& kernel);

}  // namespace nautilus::emit
