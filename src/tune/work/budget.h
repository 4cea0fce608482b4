// SPDX-License-Identifier: Apache-2.0
// Times as people write them.
#pragma once

#include <optional>
#include <string>

namespace nautilus::tune {

// Seconds of `90`, `90s`, `2m`, `1h`; nothing if it is none of these.
std::optional<double> seconds_of(const std::string& text);

}  // namespace nautilus::tune
