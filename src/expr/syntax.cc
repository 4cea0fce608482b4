// SPDX-License-Identifier: Apache-2.0
#include "expr/syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/expr.h"

namespace nautilus::expr {
namespace {

using diag::Code;
using text::Lexeme;
using text::Token;
using Kind = Syntax::Kind;

constexpr std::string_view kKeywords[] = {"dims", "static", "hint", "fact", "numerics", "fn",
                                          "let",  "in",     "and",  "or",   "not",      "inf",
                                          "true", "false",  "from", "acc"};

bool is_reducer(std::string_view word) {
  const auto& names = reducer_names();
  return word == "mean" || std::find(names.begin(), names.end(), word) != names.end();
}

class Parser {
 public:
  Parser(text::Cursor& cursor, SyntaxPool& pool) : c_(cursor), pool_(pool) {}

  const Syntax* expr() {
    if (!enter()) return nullptr;
    const Syntax* e = c_.at("let") ? let() : either();
    --nesting_;
    return e;
  }

  // `i`, `i < M`; a range of a reduction also `s <= t`, `.. <= t`.
  std::optional<SyntaxAxis> axis(bool is_range) {
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

 private:
  // Recursion through the grammar without a finished node, as in "((((": counted here, before the
  // stack feels it.
  bool enter() {
    if (++nesting_ <= kMaxDepth) return true;
    too_deep(c_.peek().span);
    return false;
  }

  void too_deep(diag::Span span) {
    c_.sink()
        .report(Code::TooDeep, span,
                fmt::format("the expression nests deeper than {} levels", kMaxDepth))
        .with_help("split it into several equations");
  }

  const Syntax* finish(Syntax node) {
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

  const Syntax* infix(const Lexeme& op, const Syntax* x, const Syntax* y) {
    if (!x || !y) return nullptr;
    return finish({.kind = Kind::Infix,
                   .span = diag::join(x->span, y->span),
                   .name_span = op.span,
                   .text = op.text,
                   .args = {x, y},
                   .axes = {},
                   .acc = {}});
  }

  const Syntax* let() {
    const Lexeme word = c_.next();
    const auto name = parse_name(c_, "a name after `let`");
    if (!name || !c_.expect("=", "after the name of a `let`")) return nullptr;
    const Syntax* value = expr();
    if (!value || !c_.expect("in", "after the value of a `let`")) return nullptr;
    const Syntax* body = expr();
    if (!body) return nullptr;
    return finish({.kind = Kind::Let,
                   .span = diag::join(word.span, body->span),
                   .name_span = name->span,
                   .text = name->text,
                   .args = {value, body},
                   .axes = {},
                   .acc = {}});
  }

  const Syntax* either() {
    const Syntax* x = both();
    while (x && c_.at("or")) {
      const Lexeme op = c_.next();
      x = infix(op, x, both());
    }
    return x;
  }

  const Syntax* both() {
    const Syntax* x = negation();
    while (x && c_.at("and")) {
      const Lexeme op = c_.next();
      x = infix(op, x, negation());
    }
    return x;
  }

  const Syntax* negation() {
    if (!c_.at("not")) return comparison();
    const Lexeme op = c_.next();
    if (!enter()) return nullptr;
    const Syntax* x = negation();
    --nesting_;
    return prefix(op, x);
  }

  const Syntax* prefix(const Lexeme& op, const Syntax* x) {
    if (!x) return nullptr;
    return finish({.kind = Kind::Prefix,
                   .span = diag::join(op.span, x->span),
                   .name_span = op.span,
                   .text = op.text,
                   .args = {x},
                   .axes = {},
                   .acc = {}});
  }

  bool at_comparison() const {
    for (std::string_view op : {"==", "!=", "<", "<=", ">", ">="}) {
      if (c_.at(op)) return true;
    }
    return false;
  }

  const Syntax* comparison() {
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

  const Syntax* sum() {
    const Syntax* x = product();
    while (x && (c_.at("+") || c_.at("-"))) {
      const Lexeme op = c_.next();
      x = infix(op, x, product());
    }
    return x;
  }

  const Syntax* product() {
    const Syntax* x = unary();
    while (x && (c_.at("*") || c_.at("/") || c_.at("%"))) {
      const Lexeme op = c_.next();
      x = infix(op, x, unary());
    }
    return x;
  }

  const Syntax* unary() {
    if (c_.at("-")) {
      const Lexeme op = c_.next();
      if (!enter()) return nullptr;
      const Syntax* x = unary();
      --nesting_;
      return prefix(op, x);
    }
    if (c_.peek().kind == Token::Name && is_reducer(c_.peek().text) && c_.peek(1).is("["))
      return reduction();
    return primary();
  }

  const Syntax* reduction() {
    if (!enter()) return nullptr;  // extents, initial element and body may nest
    const Syntax* r = entered_reduction();
    --nesting_;
    return r;
  }

  const Syntax* entered_reduction() {
    const Lexeme word = c_.next();
    c_.next();  // [
    Syntax r{.kind = Kind::Reduce,
             .span = word.span,
             .name_span = word.span,
             .text = word.text,
             .args = {},
             .axes = {},
             .acc = {}};
    do {
      const auto a = axis(true);
      if (!a) return nullptr;
      if (a->extent) r.depth = std::max(r.depth, a->extent->depth + 1);
      r.axes.push_back(*a);
    } while (c_.accept(","));
    while (c_.at("from") || c_.at("acc")) {
      const Lexeme clause = c_.next();
      if (clause.text == "from" ? r.init != nullptr : r.acc.has_value()) {
        c_.sink().report(Code::UnexpectedToken, clause.span,
                         fmt::format("`{}` stands twice", clause.text));
        return nullptr;
      }
      if (clause.text == "from") {
        r.init = sum();
        if (!r.init) return nullptr;
        r.depth = std::max(r.depth, r.init->depth + 1);
      } else {
        r.acc = parse_dtype(c_.peek().text);
        if (!r.acc) {
          c_.unexpected("a dtype after `acc`");
          return nullptr;
        }
        c_.next();
      }
    }
    if (!c_.expect("]", "after the axes of a reduction")) return nullptr;
    const Syntax* body = product();
    if (!body) return nullptr;
    r.span = diag::join(word.span, body->span);
    r.args = {body};
    return finish(std::move(r));
  }

  const Syntax* primary() {
    const Lexeme token = c_.peek();
    Syntax leaf{.kind = Kind::Name,
                .span = token.span,
                .name_span = token.span,
                .text = token.text,
                .integer = token.integer,
                .number = token.number,
                .args = {},
                .axes = {},
                .acc = {}};
    switch (token.kind) {
      case Token::Integer:
        leaf.kind = Kind::Integer;
        break;
      case Token::Float:
        leaf.kind = Kind::Float;
        break;
      case Token::Name:
        if (token.text == "true" || token.text == "false") {
          leaf.kind = Kind::Bool;
          leaf.integer = token.text == "true" ? 1 : 0;
        } else if (token.text == "inf") {
          leaf.kind = Kind::Inf;
        } else {
          return named();
        }
        break;
      case Token::Symbol:
        if (token.text == "(") return parenthesised();
        [[fallthrough]];
      case Token::Text:
      case Token::End:
        c_.unexpected("an expression");
        return nullptr;
    }
    c_.next();
    return finish(std::move(leaf));
  }

  const Syntax* parenthesised() {
    c_.next();
    const Syntax* e = expr();
    if (!e || !c_.expect(")", "to close the parenthesis")) return nullptr;
    pool_.back().is_parenthesised = true;  // the last node that was finished is the whole of it
    return e;
  }

  // name | name[indices] | name(args) | name[axes](args), an axis as in a reduction
  const Syntax* named() {
    const Lexeme word = c_.next();
    Syntax n{.kind = Kind::Name,
             .span = word.span,
             .name_span = word.span,
             .text = word.text,
             .args = {},
             .axes = {},
             .acc = {}};
    const bool is_function =
        parse_dtype(word.text) || is_reducer(word.text);  // `f32(x)`, `max(x, y)`
    if (is_function && !c_.at("(")) {
      c_.unexpected(fmt::format("`(` after `{}`", word.text));
      return nullptr;
    }
    if (!is_function && is_reserved(word.text)) {
      c_.sink().report(Code::UnexpectedToken, word.span,
                       fmt::format("`{}` is a reserved word, expected an expression", word.text));
      return nullptr;
    }
    if (c_.at("[")) {
      n.kind = Kind::Index;
      c_.next();
      if (!c_.at("]") && !list(n.args)) return nullptr;
      if (!c_.expect("]", "after the indices")) return nullptr;
    }
    if (c_.at("(")) {
      for (const Syntax* a : n.args) {
        const bool has_extent = a->kind == Kind::Infix && a->text == "<";
        const Syntax* name = has_extent ? a->args[0] : a;
        if (name->kind != Kind::Name) {
          c_.sink().report(Code::UnexpectedToken, a->span,
                           "expected the name of an axis before the arguments of a function");
          return nullptr;
        }
        n.axes.push_back(
            {name->text, name->span, has_extent ? a->args[1] : nullptr, has_extent ? "<" : ""});
      }
      n.kind = Kind::Call;
      n.args.clear();
      c_.next();
      if (!c_.at(")") && !list(n.args)) return nullptr;
      if (!c_.expect(")", "after the arguments")) return nullptr;
    }
    n.span = diag::join(word.span, c_.previous_span());
    return finish(std::move(n));
  }

  bool list(std::vector<const Syntax*>& out) {
    do {
      const Syntax* e = expr();
      if (!e) return false;
      out.push_back(e);
    } while (c_.accept(","));
    return true;
  }

  text::Cursor& c_;
  SyntaxPool& pool_;
  uint32_t nesting_ = 0;
};

}  // namespace

std::span<const std::string_view> keywords() { return kKeywords; }

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords) ||
         is_reducer(name) || parse_dtype(name).has_value();
}

const Syntax* parse_expr(text::Cursor& cursor, SyntaxPool& pool) {
  return Parser(cursor, pool).expr();
}

std::optional<SyntaxAxis> parse_axis(text::Cursor& cursor, SyntaxPool& pool) {
  return Parser(cursor, pool).axis(false);
}

std::optional<Lexeme> parse_name(text::Cursor& cursor, std::string_view what) {
  const Lexeme token = cursor.peek();
  if (token.kind != Token::Name) {
    cursor.unexpected(what);
    return std::nullopt;
  }
  if (is_reserved(token.text)) {
    cursor.sink().report(Code::UnexpectedToken, token.span,
                         fmt::format("`{}` is a reserved word, expected {}", token.text, what));
    return std::nullopt;
  }
  cursor.next();
  return token;
}

}  // namespace nautilus::expr
