// SPDX-License-Identifier: Apache-2.0
//
// The text form of layouts. It has its own small scanner, because this folder is below the lexer of
// the languages and needs nothing of it.
#include <charconv>

#include <fmt/core.h>

#include "layout/digits.h"

namespace nautilus::layout {

namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  // Takes `token` if it comes next.
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::optional<int> take_number() {
    skip_spaces();
    int value = 0;
    const char* end = text_.data() + text_.size();
    const auto [rest, status] = std::from_chars(text_.data() + at_, end, value);
    if (status != std::errc() || value < 0) return std::nullopt;
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  std::optional<Owner> take_owner() {
    for (const Owner owner : kOwners) {
      if (take(owner_name(owner))) return owner;
    }
    return std::nullopt;
  }
  size_t position() const { return at_; }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The digits of one clause; returns what was expected where the text is wrong, or "".
std::string parse_clause(Scanner& in, int axis, std::vector<Digit>& digits) {
  if (axis != kCopies && in.take("-")) return "";
  do {
    Digit digit;
    digit.axis = axis;
    digit.stride = 0;
    const std::optional<Owner> owner = in.take_owner();
    if (!owner) return "an owner (group, warp, lane or reg)";
    digit.owner = *owner;
    const std::optional<int> extent = in.take_number();
    if (!extent) return "an extent";
    digit.extent = *extent;
    if (axis != kCopies) {
      if (!in.take("*")) return "'*' and the stride in the axis";
      const std::optional<int> stride = in.take_number();
      if (!stride) return "the stride in the axis";
      digit.stride = *stride;
    }
    if (in.take("@")) {
      const std::optional<int> stride = in.take_number();
      if (!stride) return "the stride in the owner";
      digit.owner_stride = *stride;
    }
    digits.push_back(digit);
  } while (in.take(","));
  return "";
}

}  // namespace

std::string to_text(const Layout& layout) {
  std::string text;
  const auto clause = [&](int axis) {
    std::string list;
    for (const Digit& digit : layout.digits()) {
      if (digit.axis != axis) continue;
      if (!list.empty()) list += ", ";
      list += fmt::format("{} {}", owner_name(digit.owner), digit.extent);
      if (axis != kCopies) list += fmt::format("*{}", digit.stride);
      if (digit.owner_stride != 1) list += fmt::format("@{}", digit.owner_stride);
    }
    return list;
  };
  if (layout.rank() == 0) text = "scalar";
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const std::string list = clause(axis);
    text += fmt::format("{}{}: {}", axis == 0 ? "" : "; ", axis, list.empty() ? "-" : list);
  }
  if (layout.copies() > 1) text += fmt::format("; copies: {}", clause(kCopies));
  return text;
}

std::optional<Layout> parse_layout(std::string_view text, std::string* error) {
  Scanner in(text);
  const auto fail = [&](std::string_view expected) {
    *error = fmt::format("column {}: expected {}", in.position() + 1, expected);
    return std::nullopt;
  };
  std::vector<Digit> digits;
  int rank = 0;
  const bool is_scalar = in.take("scalar");
  bool more = !is_scalar || in.take(";");
  while (more) {
    int axis = kCopies;
    if (!in.take("copies")) {
      if (is_scalar) return fail("'copies'");
      if (in.take_number() != rank) return fail(fmt::format("axis {} or 'copies'", rank));
      axis = rank++;
    } else if (rank == 0 && !is_scalar) {
      return fail("'scalar' or an axis first");
    }
    if (!in.take(":")) return fail("':'");
    const std::string expected = parse_clause(in, axis, digits);
    if (!expected.empty()) return fail(expected);
    more = axis != kCopies && in.take(";");
  }
  if (!in.at_end()) return fail("the end of the layout");
  if (std::string wrong = Layout::flaw(rank, digits); !wrong.empty()) {
    *error = std::move(wrong);
    return std::nullopt;
  }
  return Layout(rank, std::move(digits));
}

}  // namespace nautilus::layout
