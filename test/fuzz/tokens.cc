// SPDX-License-Identifier: Apache-2.0
#include "tokens.h"

#include <cctype>

namespace nautilus::fuzz {

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> out;
  auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
      continue;
    }
    if (c == '#') {
      at = text.find('\n', at);
      if (at == std::string_view::npos) break;
      continue;
    }
    size_t end = at + 1;
    if (is_word(c)) {
      const bool is_number = std::isdigit(static_cast<unsigned char>(c));
      while (end < text.size() &&
             (is_word(text[end]) ||
              (is_number && (text[end] == '-' || text[end] == '+') && text[end - 1] == 'e'))) {
        ++end;
      }
    } else if (end < text.size()) {
      const std::string_view two = text.substr(at, 2);
      if (two == "->" || two == "<=" || two == ">=" || two == "==" || two == "!=") ++end;
    }
    out.push_back({at, end});
    at = end;
  }
  return out;
}

}  // namespace nautilus::fuzz
