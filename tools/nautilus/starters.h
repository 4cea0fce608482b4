// SPDX-License-Identifier: Apache-2.0
// The programs that `nautilus new` writes: share/starters/*.naut, embedded by the build.
#pragma once

#include <string_view>
#include <vector>

namespace nautilus::tool {

struct Starter {
  std::string_view kind;  // the name of the file: "attention"
  std::string_view text;
};
const std::vector<Starter>& starters();

}  // namespace nautilus::tool
