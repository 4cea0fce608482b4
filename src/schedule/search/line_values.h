// SPDX-License-Identifier: Apache-2.0
// The other values of a line of a schedule that a search tries. Some lines have a range of the
// target; all other lines get every other word, and numbers near and far.
#pragma once

#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {

// Each is a `tuned` line. Legality is not checked.
ir::Block other_values(const ir::Op& line, const target::Target& target);

// Lines that an alternative could have but that the rule leaves out: `resident` of a point kernel.
ir::Block missing_values(const KernelSchedule& kernel, size_t alternative,
                         const target::Target& target);

// A schedule with another value of a line of a kernel. If pieces of a row get another length, the
// other lines of this kernel and of the pieces' kernel that depend on it are left to the rules.
Schedule with_value(const Schedule& schedule, size_t kernel, size_t alternative, size_t line,
                    const ir::Op& value);

}  // namespace nautilus::schedule
