// SPDX-License-Identifier: Apache-2.0
#include "page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace nautilus::page {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kMinus = "\xE2\x88\x92";

// Bytes of the UTF-8 character that the text begins with; 0 if it begins with none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
  }
  // Longer than needed, halves of pairs, and beyond the last character.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90))
    return 0;
  return length;
}

std::string with_separators(std::string digits) {
  const size_t point = std::min(digits.find('.'), digits.size());
  for (size_t at = point; at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = character_bytes(text);
    const char c = text[0];
    if (length == 0 || (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 0x7F)
      out += kReplacement;
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string number_text(double value, int digits) {
  if (!std::isfinite(value)) return "none";
  if (value < 0) return std::string(kMinus) + number_text(-value, digits);
  if (value == 0) return "0";
  const auto decimals_for = [&](double v) {
    return std::max(digits - 1 - static_cast<int>(std::floor(std::log10(v))), 0);
  };
  // 9.9996 with four digits is 10.00.
  const int decimals = decimals_for(value);
  const double unit = std::pow(10.0, decimals);
  const double rounded = std::round(value * unit) / unit;
  return with_separators(
      fmt::format("{:.{}f}", value, rounded > 0 ? decimals_for(rounded) : decimals));
}

std::string prefixed_text(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; value >= 999.5 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000;
  return fmt::format("{} {}{}", number_text(value, 3), kPrefixes[prefix], unit);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string change_text(double share) {
  const std::string size = fmt::format("{:.1f} %", std::abs(100 * share));
  if (size == "0.0 %") return size;
  return fmt::format("{}{}", share < 0 ? kMinus : "+", size);
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  constexpr double kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 10 * kMinute) return fmt::format("{:.1f} min", seconds / kMinute);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{:.1f} days", seconds / kDay);
}

std::string count_text(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_separators(std::to_string(count)), noun,
                     count == 1 ? "" : "s");
}

}  // namespace nautilus::page
