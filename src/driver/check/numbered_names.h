// SPDX-License-Identifier: Apache-2.0
// Compares texts without regard to names.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <string>

namespace nautilus::driver {

// Every name as the number of its first occurrence. The first word of a line is an op and stays:
// `tiles T < tiles_2` may be `tiles T < tiles` elsewhere. Other words of the language are numbered
// as well, which does no harm: they are the same in both texts.
inline std::string with_numbered_names(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto is_word = [&](size_t k) {
      return k < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[k])) || text[k] == '_');
    };
    if (!is_word(i) || std::isdigit(static_cast<unsigned char>(text[i]))) {
      out += text[i++];
      while (is_word(i - 1) && is_word(i)) out += text[i++];
      continue;
    }
    size_t end = i;
    while (is_word(end)) ++end;
    const std::string word = text.substr(i, end - i);
    const size_t line = out.find_last_not_of(' ');
    if (line == std::string::npos || out[line] == '\n')
      out += word;
    else
      out += fmt::format("n{}", numbers.emplace(word, numbers.size()).first->second);
    i = end;
  }
  return out;
}

}  // namespace nautilus::driver
