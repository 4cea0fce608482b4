// SPDX-License-Identifier: Apache-2.0
#include "lsp/framing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace nautilus::lsp {
namespace {

// No document is that long; a greater length means a damaged head.
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr size_t kMaxHead = size_t{16} << 10;

bool is_length_name(std::string_view name) {
  constexpr std::string_view kName = "content-length";
  return name.size() == kName.size() &&
         std::equal(name.begin(), name.end(), kName.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

std::optional<size_t> length_in(std::string_view head) {
  while (!head.empty()) {
    const size_t end = std::min(head.find("\r\n"), head.size());
    std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_length_name(line.substr(0, colon))) continue;
    line.remove_prefix(colon + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    size_t value = 0;
    const auto r = std::from_chars(line.data(), line.data() + line.size(), value);
    if (r.ec == std::errc() && r.ptr == line.data() + line.size() && value <= kMaxBytes)
      return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Framing::next() {
  const size_t blank = buffer_.find("\r\n\r\n");
  if (blank == std::string::npos) {
    if (buffer_.size() <= kMaxHead) return std::nullopt;
    buffer_.clear();
    return "";
  }
  const auto length = length_in(std::string_view(buffer_).substr(0, blank));
  const size_t begin = blank + 4;
  if (!length) {
    buffer_.erase(0, begin);
    return "";
  }
  if (buffer_.size() - begin < *length) return std::nullopt;
  std::string message = buffer_.substr(begin, *length);
  buffer_.erase(0, begin + *length);
  return message;
}

std::string framed(std::string_view message) {
  return fmt::format("Content-Length: {}\r\n\r\n{}", message.size(), message);
}

}  // namespace nautilus::lsp
