// SPDX-License-Identifier: Apache-2.0
// What a name, a bracket, `let` or a reducer begins; a part of syntax_parser.h.
#include <fmt/format.h>

#include <algorithm>

#include "expr/syntax_parser.h"

namespace nautilus::expr {

using diag::Code;
using text::Lexeme;
using text::Token;

const Syntax* SyntaxParser::let() {
  const Lexeme word = c_.next();
  Syntax node = empty(Kind::Let, word);
  do {
    const auto name = parse_name(c_, "a name after `let`");
    if (!name || !c_.expect("=", "after the name of a `let`")) return nullptr;
    node.axes.push_back({name->text, name->span});
    node.args.push_back(expr());
    if (!node.args.back()) return nullptr;
  } while (c_.accept(","));
  if (c_.at("repeat")) {
    if (!rounds(node)) return nullptr;
  } else if (node.axes.size() > 1) {
    c_.unexpected("`repeat[...]` after several values of a `let`");
    return nullptr;
  } else {
    node.text = node.axes[0].name;
    node.name_span = node.axes[0].span;
    node.axes.clear();
  }
  if (!c_.expect("in", "after the value of a `let`")) return nullptr;
  node.args.push_back(expr());
  if (!node.args.back()) return nullptr;
  node.span = diag::join(word.span, node.args.back()->span);
  return finish(std::move(node));
}

bool SyntaxParser::rounds(Syntax& node) {
  const Lexeme word = c_.next();
  node.kind = Kind::Repeat;
  node.text = word.text;
  node.name_span = word.span;
  if (!c_.expect("[", "after `repeat`")) return false;
  if (c_.peek(1).is("<")) {
    const auto axis = this->axis(false);
    if (!axis) return false;
    node.axes.push_back(*axis);
  } else {
    const Syntax* count = sum();
    if (!count) return false;
    node.axes.push_back({{}, count->span, count});
  }
  node.depth = std::max(node.depth, node.axes.back().extent->depth + 1);
  if (!c_.expect("]", "after the number of rounds")) return false;
  const size_t names = node.args.size();
  if (!list(node.args)) return false;
  if (node.args.size() == 2 * names) return true;
  c_.sink()
      .report(Code::BadStatement, word.span,
              fmt::format("`repeat` has {} for {}",
                          diag::counted(node.args.size() - names, "step", "steps"),
                          diag::counted(names, "value", "values")))
      .with_help("write the next value of each name, in the order of the names");
  return false;
}

const Syntax* SyntaxParser::reduction() {
  if (!enter()) return nullptr;  // extents, initial element and body may nest
  const Syntax* r = entered_reduction();
  --nesting_;
  return r;
}

const Syntax* SyntaxParser::entered_reduction() {
  const Lexeme word = c_.next();
  c_.next();  // [
  Syntax r = empty(Kind::Reduce, word);
  do {
    const auto a = axis(true);
    if (!a) return nullptr;
    if (a->extent) r.depth = std::max(r.depth, a->extent->depth + 1);
    r.axes.push_back(*a);
  } while (c_.accept(","));
  const Syntax* rank = nullptr;
  while (c_.at("from") || c_.at("rank") || c_.at("acc")) {
    const Lexeme clause = c_.next();
    const Syntax** operand = clause.text == "from"   ? &r.init
                             : clause.text == "rank" ? &rank
                                                     : nullptr;
    if (operand ? *operand != nullptr : r.acc.has_value()) {
      c_.sink().report(Code::UnexpectedToken, clause.span,
                       fmt::format("`{}` stands twice", clause.text));
      return nullptr;
    }
    if (operand) {
      *operand = sum();
      if (!*operand) return nullptr;
      r.depth = std::max(r.depth, (*operand)->depth + 1);
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
  if (rank) r.args.push_back(rank);
  return finish(std::move(r));
}

const Syntax* SyntaxParser::primary() {
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
      if (token.text == "[") return table();
      [[fallthrough]];
    case Token::Text:
    case Token::End:
      c_.unexpected("an expression");
      return nullptr;
  }
  c_.next();
  return finish(std::move(leaf));
}

const Syntax* SyntaxParser::parenthesised() {
  c_.next();
  const Syntax* e = expr();
  if (!e || !c_.expect(")", "to close the parenthesis")) return nullptr;
  pool_.back().is_parenthesised = true;  // the last node that was finished is the whole of it
  return e;
}

const Syntax* SyntaxParser::named() {
  const Lexeme word = c_.next();
  Syntax n = empty(Kind::Name, word);
  const bool is_function =
      parse_dtype(word.text) || is_reducer_word(word.text);  // `f32(x)`, `max(x, y)`
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

bool SyntaxParser::list(std::vector<const Syntax*>& out) {
  do {
    const Syntax* e = expr();
    if (!e) return false;
    out.push_back(e);
  } while (c_.accept(","));
  return true;
}

const Syntax* SyntaxParser::table() {
  if (!enter()) return nullptr;
  const Lexeme open = c_.next();
  Syntax node = empty(Kind::Table, open);
  if (!list(node.args) || !c_.expect("]", "after the elements of a table")) return nullptr;
  if (!c_.expect("[", "before the index into a table")) {
    c_.sink().last().with_help(
        "an element of a table is `[a, b][i]`; a table of several dimensions has a name, `table T "
        "= "
        "[[a, b], [c, d]]`");
    return nullptr;
  }
  node.args.push_back(expr());
  if (!node.args.back() || !c_.expect("]", "after the index into a table")) return nullptr;
  --nesting_;
  node.span = diag::join(open.span, c_.previous_span());
  return finish(std::move(node));
}

}  // namespace nautilus::expr
