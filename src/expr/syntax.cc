// SPDX-License-Identifier: Apache-2.0
#include "expr/syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/syntax_parser.h"

namespace nautilus::expr {

using diag::Code;
using text::Lexeme;
using text::Token;

const Syntax* SyntaxParser::expr() {
  if (!enter()) return nullptr;
  const Syntax* e = c_.at("let") ? let() : either();
  --nesting_;
  return e;
}

std::optional<SyntaxAxis> SyntaxParser::axis(bool is_range) {
  const Lexeme word = c_.peek();
  const bool is_copy = is_range && c_.accept("..");
  const auto name = is_copy ? std::optional(word) : parse_name(c_, "an axis");
  if (!name) return std::nullopt;
  SyntaxAxis a{name->text, name->span, nullptr};
  for (std::string_view op : {"<", "<=", ">", ">="}) {
    if ((is_range || op == "<") && c_.at(op)) a.relation = op;
  }
  if (a.relation.empty()) {
    if (!is_copy) return a;
    c_.unexpected("`<`, `<=`, `>` or `>=` after `..`");
    return std::nullopt;
  }
  c_.next();
  a.extent = sum();
  return a.extent ? std::optional(a) : std::nullopt;
}

bool SyntaxParser::enter() {
  if (++nesting_ <= kMaxDepth) return true;
  too_deep(c_.peek().span);
  return false;
}

void SyntaxParser::too_deep(diag::Span span) {
  c_.sink()
      .report(Code::TooDeep, span,
              fmt::format("the expression nests deeper than {} levels", kMaxDepth))
      .with_help("split it into several equations");
}

const Syntax* SyntaxParser::finish(Syntax node) {
  for (const Syntax* a : node.args) {
    if (!a) return nullptr;
    node.depth = std::max(node.depth, a->depth + 1);
  }
  if (node.depth > kMaxDepth) {
    too_deep(node.span);
    return nullptr;
  }
  pool_.push_back(std::move(node));
  return &pool_.back();
}

Syntax SyntaxParser::empty(Kind kind, const Lexeme& word) {
  return {.kind = kind,
          .span = word.span,
          .name_span = word.span,
          .text = word.text,
          .args = {},
          .axes = {},
          .acc = {}};
}

const Syntax* SyntaxParser::infix(const Lexeme& op, const Syntax* x, const Syntax* y) {
  if (!x || !y) return nullptr;
  Syntax node = empty(Kind::Infix, op);
  node.span = diag::join(x->span, y->span);
  node.args = {x, y};
  return finish(std::move(node));
}

const Syntax* SyntaxParser::either() {
  const Syntax* x = both();
  while (x && c_.at("or")) {
    const Lexeme op = c_.next();
    x = infix(op, x, both());
  }
  return x;
}

const Syntax* SyntaxParser::both() {
  const Syntax* x = negation();
  while (x && c_.at("and")) {
    const Lexeme op = c_.next();
    x = infix(op, x, negation());
  }
  return x;
}

const Syntax* SyntaxParser::negation() {
  if (!c_.at("not")) return comparison();
  const Lexeme op = c_.next();
  if (!enter()) return nullptr;
  const Syntax* x = negation();
  --nesting_;
  return prefix(op, x);
}

const Syntax* SyntaxParser::prefix(const Lexeme& op, const Syntax* x) {
  if (!x) return nullptr;
  Syntax node = empty(Kind::Prefix, op);
  node.span = diag::join(op.span, x->span);
  node.args = {x};
  return finish(std::move(node));
}

bool SyntaxParser::at_comparison() const {
  for (std::string_view op : {"==", "!=", "<", "<=", ">", ">="}) {
    if (c_.at(op)) return true;
  }
  return false;
}

const Syntax* SyntaxParser::comparison() {
  const Syntax* x = sum();
  if (!x || !at_comparison()) return x;
  const Lexeme op = c_.next();
  x = infix(op, x, sum());
  if (x && at_comparison()) {
    c_.sink()
        .report(Code::UnexpectedToken, c_.peek().span, "comparisons do not chain")
        .also(op.span, "the first comparison")
        .with_help("write `a < b and b < c`");
    return nullptr;
  }
  return x;
}

const Syntax* SyntaxParser::sum() {
  const Syntax* x = product();
  while (x && (c_.at("+") || c_.at("-"))) {
    const Lexeme op = c_.next();
    x = infix(op, x, product());
  }
  return x;
}

const Syntax* SyntaxParser::product() {
  const Syntax* x = unary();
  while (x && (c_.at("*") || c_.at("/") || c_.at("%"))) {
    const Lexeme op = c_.next();
    x = infix(op, x, unary());
  }
  return x;
}

const Syntax* SyntaxParser::unary() {
  if (c_.at("-")) {
    const Lexeme op = c_.next();
    if (!enter()) return nullptr;
    const Syntax* x = unary();
    --nesting_;
    return prefix(op, x);
  }
  if (c_.peek().kind == Token::Name && is_reducer_word(c_.peek().text) && c_.peek(1).is("["))
    return reduction();
  return primary();
}

const Syntax* parse_expr(text::Cursor& cursor, SyntaxPool& pool) {
  return SyntaxParser(cursor, pool).expr();
}

std::optional<SyntaxAxis> parse_axis(text::Cursor& cursor, SyntaxPool& pool) {
  return SyntaxParser(cursor, pool).axis(false);
}

}  // namespace nautilus::expr
