// SPDX-License-Identifier: Apache-2.0
#include "diag/source.h"

#include <algorithm>

namespace nautilus::diag {

Span join(Span a, Span b) {
  if (!a.is_known()) return b;
  if (!b.is_known() || a.file != b.file) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

size_t code_point_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size()) return 0;
  uint32_t point = lead & (0x7FU >> length);
  for (size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    if ((byte & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte & 0x3F);
  }
  const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool is_surrogate = point >= 0xD800 && point < 0xE000;
  return point < least || point > 0x10FFFF || is_surrogate ? 0 : length;
}

uint32_t count_code_points(std::string_view text) {
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    i += std::max<size_t>(1, code_point_bytes(text.substr(i)));
  }
  return count;
}

uint32_t SourceMap::add(std::string path, std::string text) {
  File file{std::move(path), std::move(text), {0}};
  for (uint32_t i = 0; i < file.text.size(); ++i) {
    if (file.text[i] == '\n') file.line_begin.push_back(i + 1);
  }
  files_.push_back(std::move(file));
  return static_cast<uint32_t>(files_.size());
}

std::string_view SourceMap::text(Span span) const {
  if (!span.is_known()) return {};
  return text(span.file).substr(span.begin, span.end - span.begin);
}

Place SourceMap::place(uint32_t file, uint32_t offset) const {
  const auto& begins = files_[file - 1].line_begin;
  const auto next = std::upper_bound(begins.begin(), begins.end(), offset);
  const auto line = static_cast<uint32_t>(next - begins.begin());
  const uint32_t begin = begins[line - 1];
  return {line, 1 + count_code_points(text(file).substr(begin, offset - begin))};
}

std::string_view SourceMap::line(uint32_t file, uint32_t line) const {
  const File& f = files_[file - 1];
  const uint32_t begin = f.line_begin[line - 1];
  std::string_view rest = std::string_view(f.text).substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

}  // namespace nautilus::diag
