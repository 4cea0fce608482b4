// SPDX-License-Identifier: Apache-2.0
#include "schedule/text/text_lines.h"

#include <algorithm>

namespace nautilus::schedule {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  while (!(line = trimmed(line)).empty()) {
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    out.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

}  // namespace

std::vector<TextLine> text_lines(std::string_view text) {
  std::vector<TextLine> out;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const bool is_indented = line.starts_with(' ') || line.starts_with('\t');
    line = trimmed(line);
    if (!line.empty()) out.push_back({number, std::string(line), words_of(line), is_indented});
  }
  return out;
}

std::vector<std::string> pieces_of(std::string_view line) {
  std::vector<std::string> out;
  while (true) {
    const size_t end = std::min(line.find(';'), line.size());
    if (const std::string_view piece = trimmed(line.substr(0, end)); !piece.empty())
      out.emplace_back(piece);
    if (end == line.size()) return out;
    line.remove_prefix(end + 1);
  }
}

}  // namespace nautilus::schedule
