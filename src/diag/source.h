// SPDX-License-Identifier: Apache-2.0
// Source texts and places in them.
//
// A Span is a half-open byte range of one text. It is everything that a token, a syntax node or an
// op remembers about its origin; line numbers, columns and the text of a line are recomputed from
// the SourceMap when a message is rendered.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::diag {

struct Span {
  uint32_t file = 0;  // 0: no place at all
  uint32_t begin = 0;
  uint32_t end = 0;

  bool is_known() const { return file != 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

// Smallest span that covers both; they must be in the same text, otherwise the first is returned.
Span join(Span a, Span b);

struct Place {
  uint32_t line = 0;    // 1-based
  uint32_t column = 0;  // 1-based, counted in code points
};

class SourceMap {
 public:
  // Returns the file number to put into spans.
  uint32_t add(std::string path, std::string text);

  std::string_view path(uint32_t file) const { return files_[file - 1].path; }
  std::string_view text(uint32_t file) const { return files_[file - 1].text; }
  std::string_view text(Span span) const;
  Place place(uint32_t file, uint32_t offset) const;
  std::string_view line(uint32_t file, uint32_t line) const;

 private:
  struct File {
    std::string path;
    std::string text;
    std::vector<uint32_t> line_begin;
  };
  std::deque<File> files_;  // views into a text stay valid when files are added
};

// Bytes of the code point that `text` starts with; 0 if it is empty or starts with no well-formed
// one (overlong forms and surrogates are malformed).
size_t code_point_bytes(std::string_view text);
// Number of code points in `text`; every invalid byte counts as one.
uint32_t count_code_points(std::string_view text);

}  // namespace nautilus::diag
