// SPDX-License-Identifier: Apache-2.0
// The meanings of the words of the language.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::lsp {

// Markdown; empty for other words. `is_reducer`: `max[j] x`, not `max(x, y)`.
std::string word_meaning(std::string_view word, bool is_reducer);

}  // namespace nautilus::lsp
