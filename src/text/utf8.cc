// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include "diag/source.h"

namespace nautilus::text {

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = diag::code_point_bytes(text.substr(i));
    if (bytes == 0) return i;
    i += bytes;
  }
  return std::nullopt;
}

}  // namespace nautilus::text
