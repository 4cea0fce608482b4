// SPDX-License-Identifier: Apache-2.0
// Places in a document as editors count them: lines from 0, and in a line 16-bit units of UTF-16.
// The compiler counts bytes of UTF-8; one emoji in a comment is four bytes and two units.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace nautilus::lsp {

struct Position {
  int64_t line = 0;
  int64_t character = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// The lines of a text, which end with "\n", "\r\n" or "\r". The text must outlive the table.
class LineTable {
 public:
  explicit LineTable(std::string_view text);

  // Of a byte; a byte after the text is at its end.
  Position position(size_t offset) const;
  // The byte of a position. A position after the end of its line or of the text is at that end, as
  // the protocol requires; so is the second half of a character.
  size_t offset(Position position) const;

 private:
  std::string_view text_;
  std::vector<size_t> begins_;
};

}  // namespace nautilus::lsp
