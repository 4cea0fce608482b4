// SPDX-License-Identifier: Apache-2.0
// The lines of a schedule's text, before they are parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nautilus::schedule {

struct TextLine {
  int number = 0;  // from 1
  std::string text;
  std::vector<std::string> words;
  bool is_indented = false;
};

// Without comments (`# ...`) and empty lines.
std::vector<TextLine> text_lines(std::string_view text);

// The decisions of a line: what stands between `;`, without blanks around it.
std::vector<std::string> pieces_of(std::string_view line);

}  // namespace nautilus::schedule
