// SPDX-License-Identifier: Apache-2.0
// The standard library: .naut texts with functions, embedded by the build from lib/.
#pragma once

#include <string_view>
#include <vector>

namespace nautilus::spec {

struct LibraryText {
  std::string_view path;
  std::string_view text;
};
const std::vector<LibraryText>& library_texts();

}  // namespace nautilus::spec
