// SPDX-License-Identifier: Apache-2.0
// What the words mean that the language itself has.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::lsp {

// Markdown; empty if the word is none of the language. `is_reducer`: `max[j] x`, not `max(x, y)`.
std::string word_meaning(std::string_view word, bool is_reducer);

}  // namespace nautilus::lsp
