// SPDX-License-Identifier: Apache-2.0
// The other values of a line of a schedule that a search tries: for lines that have one, the values
// of a range of the target; for all others every other word, and numbers near and far.
#pragma once

#include "decision/decisions.h"
#include "target/target.h"

namespace nautilus::schedule {

// Each a line that is `tuned`. Whether it is legal is not asked.
ir::Block other_values(const ir::Op& line, const target::Target& target);

}  // namespace nautilus::schedule
