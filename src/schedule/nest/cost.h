// SPDX-License-Identifier: Apache-2.0
// Predicted time of a scheduled nest: a pure function of the nest, the target's constants and the
// sizes.
//
//   step    = matrix unit, register work, shared memory and copies of one step of a CTA; products
//             alone: the largest of them; otherwise a power mean of matrix and register work, at
//             least the others
//   tile    = steps * step + what happens once; of two groups that take turns, one has its steps
//             while the other finishes its tile: the longer of both counts
//   kernel  = tiles taken by the multiprocessors: whole waves where all tiles are alike, the
//             longest tile or the mean where their steps differ (the longest run first)
//
// Sizes are known when the kernel is launched: the same formula is an expression of the plan, which
// launches the cheapest of several kernels.
#pragma once

#include <cstdint>
#include <string>

#include "ir/environment.h"
#include "schedule/nest/build.h"

namespace nautilus::schedule {

// Cycles of one step of a CTA, by unit.
struct StepFloors {
  double matrix = 0;
  double vector = 0;  // all groups
  double shared = 0;
  double copy = 0;            // rows of whole 128-byte lines
  double copy_unaligned = 0;  // others
};

struct NestCost {
  ir::Axes grid;
  Expr steps;                // of a tile, by grid axes and sizes; null: no loop
  std::vector<Expr> ragged;  // if one of these is true, rows of operands are not whole cache lines
  int64_t warp_groups = 1;
  int64_t cluster = 1;
  int64_t resident = 1;
  Expr row_tile;
  bool is_alternating = false;  // groups alternate: work that happens once hides behind products
  StepFloors floors;
  double once = 0;         // cycles of a tile in addition to its steps
  double hidden = 0;       // the same while the other group's tile has its steps
  double kernel_once = 0;  // cycles of the kernel in addition to its tiles
  double step = 0;
  double step_unaligned = 0;
  double code = 0;  // instructions of a thread in the element-wise work of a step
};

// `program`: declares the buffers other than the nest's locals.
NestCost cost_of(const BuiltKernel& built, const WholeNest& whole, const ir::Program& program,
                 const Target& target, expr::ExprPool& pool);

// Cycles, as an integer expression of the program's sizes; without the launch, which is the same
// for all.
Expr cycles_of(const NestCost& cost, const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule
