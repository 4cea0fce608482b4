// SPDX-License-Identifier: Apache-2.0
// A rough lexer that also works on texts which are no programs: the compiler's own refuses them.
#pragma once

#include <string_view>
#include <vector>

namespace nautilus::fuzz {

struct Token {
  size_t begin = 0;
  size_t end = 0;
};

// Words and numbers, two-character operators, single bytes; without blanks and comments.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace nautilus::fuzz
