// SPDX-License-Identifier: Apache-2.0
// Identifies the build of the compiler: only the same build may reuse stored results, whatever its
// version number says.
#pragma once

#include <string>

namespace nautilus::base {

// The linker's hash of the program or library that this code is part of, as hexadecimal digits;
// empty if it was linked without one.
const std::string& build_id();

}  // namespace nautilus::base
