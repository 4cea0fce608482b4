// SPDX-License-Identifier: Apache-2.0
// The work of one step, and of one tile, of a scheduled nest for each unit of a multiprocessor.
#pragma once

#include <cstdint>

#include "schedule/nest/cost.h"

namespace nautilus::schedule {

struct NestWork {
  double matrix = 0;       // cycles of one group and step
  double matrix_once = 0;  // of one group and tile
  double vector = 0;       // slots of a warp of one group and step
  double vector_once = 0;
  double read = 0;    // bytes of operands in shared memory, of one group and step
  double copied = 0;  // bytes written to shared memory in a step
  double moved = 0;   // bytes asked of the second-level cache
  double results = 0;
  int64_t tile_registers = 0;  // of a thread, in the tiles of a step
  bool is_waited_for = false;  // a step needs its own products before the next one begins
};

// Also writes properties of the nest to `cost`: its grid, steps, groups, and the code of a step.
NestWork count_work(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
                    const Target& target, expr::ExprPool& pool, NestCost& cost);

}  // namespace nautilus::schedule
