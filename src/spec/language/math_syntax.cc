// SPDX-License-Identifier: Apache-2.0
#include "spec/language/math_syntax.h"

#include <fmt/format.h>

#include "spec/language/table_syntax.h"

namespace nautilus::spec {
namespace {

using diag::Code;
using text::Lexeme;
using text::Token;

class Parser {
 public:
  Parser(const std::vector<Lexeme>& tokens, MathSyntax& out, diag::Sink& sink)
      : c_(tokens, sink), out_(out) {}

  bool program() {
    bool ok = true;
    while (c_.peek().kind != Token::End && !c_.sink().is_full()) {
      const size_t begin = c_.position();
      if (statement()) continue;
      ok = false;
      if (c_.position() == begin) c_.next();
      recover();
    }
    return ok;
  }

 private:
  // The grammar ignores line breaks, but people start statements in the first column.
  void recover() {
    while (c_.peek().kind != Token::End && !(c_.peek().is_line_start && c_.peek().column == 0)) {
      c_.next();
    }
  }

  bool statement() {
    if (c_.accept("dims")) return dims();
    if (c_.accept("static")) return statics();
    // No reserved word: nothing else has a name after a name.
    if (c_.at("size") && c_.peek(1).kind == Token::Name) {
      c_.next();
      return sizes();
    }
    if (c_.at("table") && c_.peek(1).kind == Token::Name) {
      c_.next();
      return table();
    }
    if (c_.accept("hint")) return hints();
    if (c_.accept("fact")) return facts();
    if (c_.at("numerics")) return numerics();
    if (c_.accept("fn")) return function();
    if (c_.at("^")) {
      c_.sink()
          .report(Code::UnexpectedToken, c_.peek().span, "there is no operator `^`")
          .with_help("a power is written `pow(x, y)`");
      return false;
    }
    const auto first = expr::parse_name(c_, "a statement (a declaration or an equation)");
    if (!first) return false;
    const NameSyntax name{first->text, first->span};
    if (c_.at("[")) return equation(name);
    if (c_.at("=")) return scalars({name}, expr::DType::F32);
    std::vector<NameSyntax> names = {name};
    while (c_.accept(",")) {
      const auto next = expr::parse_name(c_, "a name");
      if (!next) return false;
      names.push_back({next->text, next->span});
    }
    if (!c_.at(":")) {
      c_.unexpected(fmt::format("`:`, `=` or `[` after `{}`", names.back().text));
      return false;
    }
    c_.next();
    const auto dtype = parse_dtype();
    if (!dtype) return false;
    return c_.at("[") ? tensors(names, *dtype) : scalars(names, *dtype);
  }

  std::optional<expr::DType> parse_dtype() {
    const auto dtype = expr::parse_dtype(c_.peek().text);
    if (!dtype) {
      c_.unexpected(fmt::format("a dtype ({})", fmt::join(expr::dtype_names(), ", ")));
      return std::nullopt;
    }
    c_.next();
    return dtype;
  }

  bool dims() {
    do {
      const auto name = expr::parse_name(c_, "the name of a size");
      if (!name) return false;
      out_.dims.push_back({name->text, name->span});
    } while (c_.accept(","));
    return true;
  }

  bool statics() { return definitions("a static size", out_.statics); }
  bool sizes() { return definitions("a size", out_.sizes); }

  bool definitions(std::string_view what, std::vector<StaticSyntax>& out) {
    do {
      const auto name = expr::parse_name(c_, fmt::format("the name of {}", what));
      if (!name || !c_.expect("=", fmt::format("after the name of {}", what))) return false;
      const expr::Syntax* value = expr::parse_expr(c_, out_.pool);
      if (!value) return false;
      out.push_back({{name->text, name->span}, value});
    } while (c_.accept(","));
    return true;
  }

  bool table() {
    const auto name = expr::parse_name(c_, "the name of a table");
    if (!name || !c_.expect("=", "after the name of a table")) return false;
    return parse_table(c_, {name->text, name->span}, out_);
  }

  bool hints() {
    do {
      const auto name = expr::parse_name(c_, "the name of a size");
      if (!name || !c_.expect("=", "after the name of a size")) return false;
      if (c_.peek().kind != Token::Integer) {
        c_.unexpected("an integer");
        return false;
      }
      out_.hints.push_back({{name->text, name->span}, c_.next().integer});
    } while (c_.accept(","));
    return true;
  }

  bool facts() {
    do {
      const expr::Syntax* e = expr::parse_expr(c_, out_.pool);
      if (!e) return false;
      out_.facts.push_back(e);
    } while (c_.accept(","));
    return true;
  }

  bool numerics() {
    NumericsSyntax n;
    n.span = c_.next().span;
    while (true) {
      if (const auto rounding = rounding_at(c_.peek().text)) {
        n.roundings.emplace_back(*rounding, c_.next().span);
      } else if (c_.at("rel") || c_.at("abs")) {
        auto& target = c_.next().text == "rel" ? n.rel : n.abs;
        if (c_.peek().kind != Token::Float && c_.peek().kind != Token::Integer) {
          c_.unexpected("a number");
          return false;
        }
        target = c_.next().number;
      } else {
        break;
      }
      n.span = diag::join(n.span, c_.previous_span());
    }
    if (n.roundings.empty() && !n.rel && !n.abs) {
      c_.unexpected("`exact`, `bf16`, `tf32`, `rel` or `abs` after `numerics`");
      return false;
    }
    out_.numerics.push_back(n);
    return true;
  }

  // What the word says about operands; what needs no word has none.
  static std::optional<ir::Rounding> rounding_at(std::string_view word) {
    for (const auto r : {ir::Rounding::Exact, ir::Rounding::Bf16, ir::Rounding::Tf32}) {
      if (ir::words(r)[static_cast<size_t>(r)] == word) return r;
    }
    return std::nullopt;
  }

  bool name_list(std::vector<NameSyntax>& names, std::string_view close) {
    if (c_.at(close)) return true;
    do {
      const auto name = expr::parse_name(c_, "a parameter");
      if (!name) return false;
      names.push_back({name->text, name->span});
    } while (c_.accept(","));
    return true;
  }

  bool function() {
    const auto name = expr::parse_name(c_, "the name of a function");
    if (!name) return false;
    FunctionSyntax f;
    f.name = {name->text, name->span};
    if (c_.accept("[") &&
        !(name_list(f.axes, "]") && c_.expect("]", "after the axes of a function")))
      return false;
    if (!c_.expect("(", "before the parameters") || !name_list(f.params, ")") ||
        !c_.expect(")", "after the parameters") ||
        !c_.expect("=", "before the body of a function")) {
      return false;
    }
    f.body = expr::parse_expr(c_, out_.pool);
    if (!f.body) return false;
    out_.functions.push_back(std::move(f));
    return true;
  }

  bool tensors(const std::vector<NameSyntax>& names, expr::DType dtype) {
    c_.next();  // [
    std::vector<const expr::Syntax*> dims;
    if (!c_.at("]")) {
      do {
        const expr::Syntax* e = expr::parse_expr(c_, out_.pool);
        if (!e) return false;
        dims.push_back(e);
      } while (c_.accept(","));
    }
    if (!c_.expect("]", "after the dimensions")) return false;
    for (const NameSyntax& n : names) out_.tensors.push_back({n, dtype, dims});
    return true;
  }

  bool scalars(const std::vector<NameSyntax>& names, expr::DType dtype) {
    const expr::Syntax* init = nullptr;
    if (c_.accept("=")) {
      init = expr::parse_expr(c_, out_.pool);
      if (!init) return false;
    }
    for (const NameSyntax& n : names) out_.scalars.push_back({n, dtype, init});
    return true;
  }

  bool equation(const NameSyntax& name) {
    EquationSyntax eq;
    eq.name = name;
    c_.next();  // [
    if (!c_.at("]")) {
      do {
        const auto axis = expr::parse_axis(c_, out_.pool);
        if (!axis) return false;
        eq.axes.push_back(*axis);
      } while (c_.accept(","));
    }
    if (!c_.expect("]", "after the axes of an equation")) return false;
    eq.left = diag::join(name.span, c_.previous_span());
    if (!c_.expect("=", "after the left side of an equation")) return false;
    eq.body = expr::parse_expr(c_, out_.pool);
    if (!eq.body) return false;
    if (c_.accept("from")) {
      eq.init = expr::parse_expr(c_, out_.pool);
      if (!eq.init) return false;
    }
    if (c_.accept("->")) {
      eq.stored_span = c_.peek().span;
      eq.stored = parse_dtype();
      if (!eq.stored) return false;
    }
    out_.equations.push_back(std::move(eq));
    return true;
  }

  text::Cursor c_;
  MathSyntax& out_;
};

}  // namespace

bool parse_math(uint32_t file, MathSyntax& out, diag::Sink& sink) {
  const auto tokens = text::lex(file, sink);
  return tokens && Parser(*tokens, out, sink).program();
}

}  // namespace nautilus::spec
