// SPDX-License-Identifier: Apache-2.0
// The work of a program of the math language at given sizes: operations of its matrix products and
// bytes of its tensors.
#pragma once

#include "driver/load/load.h"
#include "ir/environment.h"

namespace nautilus::driver {

struct Work {
  // Two for each multiplication of a contraction. Elements that every reader masks are not counted
  // if the mask depends only on positions; masks on data count as if they hid nothing.
  double flops = 0;
  double bytes = 0;       // each input read once, each output written once
  bool may_skip = false;  // a condition on data may let a kernel do less
};

// The sizes and scalars of the call must be known.
Work count_work(const ir::Program& program, const ir::Environment& env, Unit& unit);

}  // namespace nautilus::driver
