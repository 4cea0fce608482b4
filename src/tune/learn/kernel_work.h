// SPDX-License-Identifier: Apache-2.0
// The work of a kernel in one launch, counted from its text at known sizes: bytes, products,
// register work, waits. Loops are counted for a few evenly spaced tiles or CTAs; a loop that
// depends on data is counted once.
#pragma once

#include "ir/environment.h"
#include "matile/ops.h"

namespace nautilus::tune {

struct KernelWork {
  double products = 0;    // multiply-adds of the matrix unit
  double copied = 0;      // bytes by the copy engine, both ways
  double loaded = 0;      // bytes by threads
  double stored = 0;      // the same
  double operations = 0;  // of single elements
  double special = 0;     // exponentials, roots, logarithms and the like among them
  double exchanged = 0;   // elements that lanes, warps or groups combine
  double waits = 0;       // for slots, products, turns; of a group
  double turns = 0;       // of loops; of a group or thread
  double tiles = 0;       // of the persistent loop; CTAs where there is none
};

// `env`: all sizes of the plan. `grid`: CTAs.
KernelWork work_of(const matile::Kernel& kernel, const ir::Environment& env, int64_t grid);

}  // namespace nautilus::tune
