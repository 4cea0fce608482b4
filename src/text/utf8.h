// SPDX-License-Identifier: Apache-2.0
// UTF-8 validation: sources are ASCII outside comments, and comments must not break the terminal
// that shows them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace nautilus::text {

// Offset of the first byte that belongs to no well-formed code point (overlong forms and surrogates
// are malformed).
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace nautilus::text
