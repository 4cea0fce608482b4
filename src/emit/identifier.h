// SPDX-License-Identifier: Apache-2.0
// Names of programs as names of the emitted text.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::emit {

// A name of the program as a name of the emitted text: one that the text uses itself gets a `_`.
std::string identifier(std::string_view name);
// The same for a kernel, which must not clash with names that the device compiler declares itself.
std::string kernel_identifier(std::string_view name);

}  // namespace nautilus::emit
