// SPDX-License-Identifier: Apache-2.0
#include "lsp/position.h"

#include <algorithm>

#include "diag/source.h"

namespace nautilus::lsp {
namespace {

// Bytes of the character that a text begins with, at least one, and what it is in UTF-16.
struct Character {
  size_t bytes;
  int64_t units;
};

Character first_character(std::string_view text) {
  const size_t bytes = std::max<size_t>(1, diag::code_point_bytes(text));
  return {bytes, bytes == 4 ? 2 : 1};
}

}  // namespace

LineTable::LineTable(std::string_view text) : text_(text), begins_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_return = text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n');
    if (text[i] == '\n' || is_return) begins_.push_back(i + 1);
  }
}

Position LineTable::position(size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), offset);
  const size_t line = static_cast<size_t>(next - begins_.begin()) - 1;
  int64_t units = 0;
  for (size_t i = begins_[line]; i < offset;) {
    const Character c = first_character(text_.substr(i));
    i += c.bytes;
    units += c.units;
  }
  return {static_cast<int64_t>(line), units};
}

size_t LineTable::offset(Position position) const {
  if (position.line < 0) return 0;
  const auto line = static_cast<size_t>(position.line);
  if (line >= begins_.size()) return text_.size();
  size_t end = line + 1 < begins_.size() ? begins_[line + 1] : text_.size();
  while (end > begins_[line] && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  size_t at = begins_[line];
  for (int64_t left = position.character; at < end && left > 0;) {
    const Character c = first_character(text_.substr(at));
    at += c.bytes;
    left -= c.units;
  }
  return std::min(at, end);
}

}  // namespace nautilus::lsp
