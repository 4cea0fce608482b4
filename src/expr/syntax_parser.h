// SPDX-License-Identifier: Apache-2.0
// The parser behind syntax.h: one function for each rule of the grammar. Operators are in
// syntax.cc; what a name, a bracket or `let` begins is in syntax_primary.cc.
#pragma once

#include "expr/syntax.h"

namespace nautilus::expr {

class SyntaxParser {
 public:
  SyntaxParser(text::Cursor& cursor, SyntaxPool& pool) : c_(cursor), pool_(pool) {}

  const Syntax* expr();
  // `i`, `i < M`; a range of a reduction also `s <= t`, `.. <= t`.
  std::optional<SyntaxAxis> axis(bool is_range);

 private:
  using Kind = Syntax::Kind;

  // Recursion through the grammar without a finished node, as in "((((": counted here, before the
  // stack feels it.
  bool enter();
  void too_deep(diag::Span span);
  const Syntax* finish(Syntax node);
  static Syntax empty(Kind kind, const text::Lexeme& word);
  const Syntax* infix(const text::Lexeme& op, const Syntax* x, const Syntax* y);
  // `let x = a in body`, `let x = a, y = b repeat[n < 4] f, g in body`
  const Syntax* let();
  // `repeat[n < 4] f, g`, `repeat[4] f, g`: one step for each name.
  bool rounds(Syntax& node);
  const Syntax* either();
  const Syntax* both();
  const Syntax* negation();
  const Syntax* prefix(const text::Lexeme& op, const Syntax* x);
  bool at_comparison() const;
  const Syntax* comparison();
  const Syntax* sum();
  const Syntax* product();
  const Syntax* unary();
  const Syntax* reduction();
  const Syntax* entered_reduction();
  const Syntax* primary();
  const Syntax* parenthesised();
  // name | name[indices] | name(args) | name[axes](args), an axis as in a reduction
  const Syntax* named();
  bool list(std::vector<const Syntax*>& out);
  // `[a, b, c][i]`
  const Syntax* table();

  text::Cursor& c_;
  SyntaxPool& pool_;
  uint32_t nesting_ = 0;
};

}  // namespace nautilus::expr
