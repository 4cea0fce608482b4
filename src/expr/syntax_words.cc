// SPDX-License-Identifier: Apache-2.0
// Words that expressions reserve; a part of syntax.h.
#include <fmt/format.h>

#include <algorithm>

#include "expr/expr.h"
#include "expr/syntax.h"

namespace nautilus::expr {
namespace {

constexpr std::string_view kKeywords[] = {"dims", "static", "hint", "fact", "numerics", "fn",
                                          "let",  "in",     "and",  "or",   "not",      "inf",
                                          "true", "false",  "from", "acc"};

}  // namespace

std::span<const std::string_view> keywords() { return kKeywords; }

bool is_reducer_word(std::string_view word) {
  const auto& names = reducer_names();
  return word == "mean" || std::find(names.begin(), names.end(), word) != names.end();
}

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords) ||
         is_reducer_word(name) || parse_dtype(name).has_value();
}

std::optional<text::Lexeme> parse_name(text::Cursor& cursor, std::string_view what) {
  const text::Lexeme token = cursor.peek();
  if (token.kind != text::Token::Name) {
    cursor.unexpected(what);
    return std::nullopt;
  }
  if (is_reserved(token.text)) {
    cursor.sink().report(diag::Code::UnexpectedToken, token.span,
                         fmt::format("`{}` is a reserved word, expected {}", token.text, what));
    return std::nullopt;
  }
  cursor.next();
  return token;
}

}  // namespace nautilus::expr
