// SPDX-License-Identifier: Apache-2.0
// A kernel of scalar code as passes and emission look at it: its points, and what the lines of its
// layout say together.
#pragma once

#include <optional>

#include "decision/row_and_point_lines.h"
#include "matile/ops.h"

namespace nautilus::matile {

struct PointLayout {
  ir::OptionalInt lanes;                   // of a point
  std::optional<EachPoints> each;          // neighbouring points of a thread
  std::optional<decision::Across> across;  // points of a thread along another axis
  std::optional<decision::Spread> spread;  // tiles of CTAs
  std::optional<decision::Patch> patch;    // points of a thread along two axes
  ir::OptionalInt held;                    // turns of loops whose elements stay in registers
  bool is_private = false;                 // each CTA has a copy of the result
  ir::OptionalInt unroll;                  // turns written one after the other
  ir::OptionalInt windows;                 // most turns of a window that is written out
  ir::OptionalInt threads;                 // of a CTA
  ir::OptionalInt resident;                // CTAs that registers are left for

  int64_t neighbours() const { return each ? each->points.value_or(1) : 1; }
  int64_t points_of_thread() const;
  bool is_ragged() const { return each && each->last == LastPoints::Ragged; }
};

// The points of a kernel; null if it has roles.
const Points* find_points(const Kernel& kernel);
// Of a kernel that has points.
const Points& points_of(const Kernel& kernel);
void set_points(Kernel& kernel, Points points);

PointLayout point_layout(const Kernel& kernel);
// The kernel has these lines instead of its own.
void set_point_layout(Kernel& kernel, const PointLayout& layout);

// The tensor that its points scatter to; null if they do not.
ir::Name scattered_result(const Points& points);

}  // namespace nautilus::matile
