// SPDX-License-Identifier: Apache-2.0
// Tokens of every text the compiler reads: .naut programs, the IR levels, rewrite rules.
//
// One token set serves all of them, so that an expression looks the same at every level. Line
// structure is kept as two facts per token (first on its line, column): the math language ignores
// them, the IR texts use them for op ends and blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"

namespace nautilus::text {

enum class Token : uint8_t {
  End,
  Name,  // letters, digits, `_`; a `.` inside joins parts of a compiler-made name (`P.e`, `K.2`)
  Integer,
  Float,
  Symbol,  // punctuation; see Lexeme::text
  Text,    // `"..."` on one line; Lexeme::text is the text between the quotes
};

struct Lexeme {
  Token kind = Token::End;
  bool is_line_start = false;
  uint32_t column = 0;  // 0-based, in bytes
  diag::Span span;
  std::string_view text;
  int64_t integer = 0;
  double number = 0;

  bool is(std::string_view wanted) const {
    return (kind == Token::Symbol || kind == Token::Name) && text == wanted;
  }
};

// Texts above this size are refused: no program is that long, and every later step may assume it.
constexpr size_t kMaxTextBytes = 1 << 20;

// The tokens of a file, closed by one End. Empty if something was reported.
std::optional<std::vector<Lexeme>> lex(uint32_t file, diag::Sink& sink);

// Reading position over tokens. Never moves past End.
class Cursor {
 public:
  Cursor(const std::vector<Lexeme>& tokens, diag::Sink& sink) : tokens_(&tokens), sink_(&sink) {}

  const Lexeme& peek(size_t ahead = 0) const;
  const Lexeme& next();
  bool at(std::string_view text) const { return peek().is(text); }
  bool accept(std::string_view text);
  // Reports "expected ..., found ..." and returns false when the next token is another one.
  bool expect(std::string_view text, std::string_view where);
  void unexpected(std::string_view expected);
  diag::Span previous_span() const;
  diag::Sink& sink() const { return *sink_; }
  size_t position() const { return position_; }
  void seek(size_t position) { position_ = position; }

 private:
  const std::vector<Lexeme>* tokens_;
  diag::Sink* sink_;
  size_t position_ = 0;
};

}  // namespace nautilus::text
