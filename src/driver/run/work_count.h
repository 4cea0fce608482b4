// SPDX-License-Identifier: Apache-2.0
// What a program of the math language has to do at given sizes: operations of its matrix products
// and bytes of its tensors.
#pragma once

#include "driver/load/load.h"
#include "ir/environment.h"

namespace nautilus::driver {

struct Work {
  // Two for each multiplication of a contraction. Elements that every reader masks are not counted
  // where the mask is of positions alone; masks on data are counted as if they let everything
  // through.
  double flops = 0;
  double bytes = 0;       // each input read once, each output written once
  bool may_skip = false;  // a condition on data may let a kernel do less
};

// The sizes and scalars of the call must be known.
Work count_work(const ir::Program& program, const ir::Environment& env, Unit& unit);

}  // namespace nautilus::driver
