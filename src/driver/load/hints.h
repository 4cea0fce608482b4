// SPDX-License-Identifier: Apache-2.0
// Sizes that the caller expects, as the hints that schedules are chosen by.
#pragma once

#include <map>
#include <string>

#include "ir/op.h"

namespace nautilus::driver {

// The program with these hints for its dims; other names are ignored.
ir::Program with_hints(ir::Program program, const std::map<std::string, int64_t>& sizes);

// The program with the hints that another one has for dims of the same name.
ir::Program with_hints_of(ir::Program program, const ir::Program& other);

}  // namespace nautilus::driver
