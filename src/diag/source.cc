// SPDX-License-Identifier: Apache-2.0
#include "diag/source.h"

#include <algorithm>

namespace nautilus::diag {

Span join(Span a, Span b) {
  if (!a.is_known()) return b;
  if (!b.is_known() || a.file != b.file) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

uint32_t count_code_points(std::string_view text) {
  return static_cast<uint32_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
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
