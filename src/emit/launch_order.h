// SPDX-License-Identifier: Apache-2.0
// Kernels that begin early overlap with those in front of them: these let the next one begin at
// once, and the next one waits before it touches global memory. So the previous kernel hides the
// work of a kernel before that wait, and the time until its CTAs start.
#pragma once

#include "matile/ops.h"
#include "matile/resources.h"

namespace nautilus::emit {

struct LaunchOrder {
  bool is_early = false;     // it begins before those in front of it have ended
  bool is_followed = false;  // by one that begins early
  // Its grid has a CTA for each multiprocessor, or a few: it counts on none being left out.
  bool is_by_multiprocessors = false;
};

// By the program's text; at a launch some of the other kernels may have nothing to do, which does
// no harm.
LaunchOrder launch_order(const ir::Program& program, const matile::Kernel& kernel);

// Shared memory that a CTA asks for. CTAs that begin early are put where there is room first: two
// of a kernel that counts on a multiprocessor each would share one, and leave another without work.
int asked_shared_bytes(const LaunchOrder& order, const matile::Resources& resources);

}  // namespace nautilus::emit
