// SPDX-License-Identifier: Apache-2.0
// Lines that mean something only as long as another one says so.
//
//   bring bias direct user; promote bias 256; ring bias slots 3 loader 1  ->  bring bias direct
//   user
//
// A printed schedule is complete: who changes one line of it would have to find those that rules
// had added for it. They go here, and the rules decide again what is left. A line that somebody
// wrote stays, and is followed or refused. Test: test/schedule/dependent_lines.sched
#pragma once

#include "schedule/text/schedule.h"

namespace nautilus::schedule {

// The schedule without lines by rule about copies of operands that are not copied: `whole`,
// `promote`, `ring` and `stages ... on` of what `bring ... direct` names, and when tiles are taken.
Schedule without_dependents(Schedule schedule);

}  // namespace nautilus::schedule
