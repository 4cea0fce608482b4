// SPDX-License-Identifier: Apache-2.0
// The other values of a line of a schedule that a search tries: for lines that have one, the values
// of a range of the target; for all others every other word, and numbers near and far.
#pragma once

#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {

// Each a line that is `tuned`. Whether it is legal is not asked.
ir::Block other_values(const ir::Op& line, const target::Target& target);

// Lines that an alternative could have and has not, because the rule leaves them out: CTAs that a
// kernel of points leaves registers for.
ir::Block missing_values(const KernelSchedule& kernel, size_t alternative,
                         const target::Target& target);

// A schedule with another value of a line of a kernel. Where pieces of a row get another length,
// what else the kernel and that of the pieces had for the old one is left to the rules.
Schedule with_value(const Schedule& schedule, size_t kernel, size_t alternative, size_t line,
                    const ir::Op& value);

}  // namespace nautilus::schedule
