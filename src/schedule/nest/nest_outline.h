// SPDX-License-Identifier: Apache-2.0
// The outline of a nest, made before the nest is written: which members of the fusion it computes
// and where, and the steps of its loop.
#pragma once

#include "schedule/nest/nest_frame.h"

namespace nautilus::schedule {

// Marks the members that stored ones need, each computed once: a member that equals an earlier one
// is another name for it.
void find_needed(NestFrame& frame);

// Gives each needed member a place, and a tile unless its readers compute it.
void place_members(NestFrame& frame);

// The steps of the loop: as the line `live` of the schedule says, or by rule.
struct FoundSteps {
  StepRange range;
  ir::Block decided;
  std::optional<Rejection> refused;  // a line that cannot be followed
};
FoundSteps find_steps(NestFrame& frame);

// The steps of one part. A part without live steps runs one masked step.
StepRange part_of(StepRange range, NestFrame& frame);

}  // namespace nautilus::schedule
