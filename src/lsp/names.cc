// SPDX-License-Identifier: Apache-2.0
// A walk over the syntax with the scopes of the language: axes of an equation and of reductions,
// `let`s and parameters hide nothing of the program but are looked for first, then come the names
// of the program, its functions, those of the library and the built-in ones.
#include "lsp/names.h"

#include <fmt/format.h>

#include <map>

#include "expr/build.h"
#include "lsp/known_types.h"
#include "lsp/word_meanings.h"
#include "spec/language/math_syntax.h"
#include "spec/language/vocabulary.h"

namespace nautilus::lsp {
namespace {

Range range_of_span(diag::Span span) { return {span.begin, span.end}; }

std::string code_block(const std::string& text) { return fmt::format("```naut\n{}\n```\n", text); }

class NameWalk {
 public:
  NameWalk(uint32_t file, const diag::SourceMap& sources, const spec::MathSyntax& math,
           const KnownTypes& known, Analysis& out)
      : file_(file), sources_(sources), math_(math), known_(known), out_(out) {}

  void run(const std::vector<text::Lexeme>& tokens) {
    words(tokens);
    declarations();
    for (const spec::FunctionSyntax& f : math_.functions) function(f);
    for (const spec::StaticSyntax& s : math_.statics) visit(s.value);
    for (const spec::StaticSyntax& s : math_.sizes) visit(s.value);
    for (const spec::HintSyntax& h : math_.hints) use(h.name.text, h.name.span);
    for (const expr::Syntax* f : math_.facts) visit(f);
    for (const spec::TensorSyntax& t : math_.tensors) {
      for (const expr::Syntax* d : t.dims) visit(d);
    }
    for (const spec::ScalarSyntax& s : math_.scalars) visit(s.init);
    for (const spec::EquationSyntax& eq : math_.equations) equation(eq);
  }

 private:
  std::string text_of(diag::Span span) const { return std::string(sources_.text(span)); }

  uint32_t add_meaning(std::string text, std::optional<Range> definition) {
    out_.meanings.push_back({std::move(text), definition});
    return static_cast<uint32_t>(out_.meanings.size() - 1);
  }

  void add_use(diag::Span span, uint32_t meaning) {
    if (span.file == file_) out_.uses.push_back({range_of_span(span), meaning});
  }

  // Words of the language by the text after them.
  void words(const std::vector<text::Lexeme>& tokens) {
    std::map<std::string, uint32_t> seen;
    for (size_t k = 0; k + 1 < tokens.size(); ++k) {
      if (tokens[k].kind != text::Token::Name) continue;
      const bool is_reducer = tokens[k + 1].is("[");
      const std::string_view word = tokens[k].text;
      if (!expr::is_reserved(word) && !expr::function_op(word)) continue;
      std::string meaning = word_meaning(word, is_reducer);
      if (meaning.empty()) continue;
      const auto [it, is_new] = seen.emplace(meaning, 0);
      if (is_new) it->second = add_meaning(std::move(meaning), std::nullopt);
      add_use(tokens[k].span, it->second);
    }
  }

  void define(const spec::NameSyntax& name, std::string text, std::string detail, EntryKind kind) {
    const uint32_t meaning = add_meaning(std::move(text), range_of_span(name.span));
    if (globals_.emplace(name.text, meaning).second)
      out_.outline.push_back(
          {std::string(name.text), std::move(detail), kind, range_of_span(name.span)});
    add_use(name.span, meaning);
  }

  void declarations() {
    for (const spec::NameSyntax& d : math_.dims) {
      std::string hint;
      for (const spec::HintSyntax& h : math_.hints) {
        if (h.name.text == d.text) hint = fmt::format(", {} by its hint", h.value);
      }
      define(d, code_block(fmt::format("dims {}", d.text)) + "a size of the caller" + hint, "size",
             EntryKind::Size);
    }
    for (const spec::StaticSyntax& s : math_.statics) {
      const std::string value = known_.value(s.name.text).value_or(text_of(s.value->span));
      define(s.name,
             code_block(fmt::format("static {} = {}", s.name.text, value)) +
                 "a size that is fixed when compiling",
             "= " + value, EntryKind::Size);
    }
    for (const spec::StaticSyntax& s : math_.sizes) {
      const std::string value = text_of(s.value->span);
      define(s.name,
             code_block(fmt::format("size {} = {}", s.name.text, value)) +
                 "a size that is made of others",
             "= " + value, EntryKind::Size);
    }
    for (const spec::ScalarSyntax& s : math_.scalars) {
      std::string text = fmt::format("{}: {}", s.name.text, expr::name(s.dtype));
      std::string about = "a scalar of the caller";
      if (s.init) text += " = " + text_of(s.init->span);
      if (const auto value = known_.value(s.name.text); s.init && value) {
        if (*value != text_of(s.init->span)) about += fmt::format(", {} by default", *value);
      }
      define(s.name, code_block(text) + about, std::string(expr::name(s.dtype)), EntryKind::Scalar);
    }
    std::map<std::string_view, const spec::TensorSyntax*> declared;
    for (const spec::TensorSyntax& t : math_.tensors) declared.emplace(t.name.text, &t);
    std::map<std::string_view, const spec::EquationSyntax*> equations;
    for (const spec::EquationSyntax& eq : math_.equations) equations.emplace(eq.name.text, &eq);
    for (const spec::TensorSyntax& t : math_.tensors) {
      std::vector<std::string> dims;
      for (const expr::Syntax* d : t.dims) dims.push_back(text_of(d->span));
      const std::string written = fmt::format("{}[{}]", expr::name(t.dtype), fmt::join(dims, ", "));
      const bool is_input = !equations.contains(t.name.text);
      tensor(t.name, written, is_input ? "an input" : "an output",
             is_input ? EntryKind::Input : EntryKind::Output);
    }
    for (const spec::EquationSyntax& eq : math_.equations) {
      if (declared.contains(eq.name.text)) continue;
      const bool is_output = eq.stored.has_value() || known_.is_output(eq.name.text);
      tensor(eq.name, eq.stored ? std::string(expr::name(*eq.stored)) : "",
             is_output ? "an output" : "an intermediate tensor, in memory only if need be",
             is_output ? EntryKind::Output : EntryKind::Equation);
    }
    for (const spec::FunctionSyntax& f : math_.functions) {
      const diag::Span whole = diag::join(f.name.span, f.body->span);
      define(f.name, code_block("fn " + text_of(whole)) + "a function of this program", "function",
             EntryKind::Function);
    }
  }

  void tensor(const spec::NameSyntax& name, const std::string& written, std::string about,
              EntryKind kind) {
    const std::string type = known_.tensor(name.text).value_or(written);
    if (const auto hint = known_.at_hints(name.text))
      about += fmt::format("; {} by the hints", *hint);
    define(
        name,
        code_block(type.empty() ? std::string(name.text) : fmt::format("{}: {}", name.text, type)) +
            about,
        type, kind);
  }

  void function(const spec::FunctionSyntax& f) {
    const size_t mark = locals_.size();
    for (const spec::NameSyntax& a : f.axes)
      bind(a.text, a.span,
           fmt::format("`{}`, an axis that the caller of `{}` names", a.text, f.name.text));
    for (const spec::NameSyntax& p : f.params)
      bind(p.text, p.span, fmt::format("`{}`, a parameter of `{}`", p.text, f.name.text));
    inside_ = "";
    visit(f.body);
    locals_.resize(mark);
  }

  void equation(const spec::EquationSyntax& eq) {
    const size_t mark = locals_.size();
    use(eq.name.text, eq.name.span);
    inside_ = eq.name.text;
    for (const expr::SyntaxAxis& a : eq.axes) {
      visit(a.extent);
      bind_axis(a, fmt::format("an axis of `{}`", eq.name.text));
    }
    visit(eq.body);
    visit(eq.init);
    locals_.resize(mark);
    inside_ = "";
  }

  void bind(std::string_view name, diag::Span span, std::string text) {
    const uint32_t meaning = add_meaning(std::move(text), range_of_span(span));
    locals_.emplace_back(name, meaning);
    add_use(span, meaning);
  }

  void bind_axis(const expr::SyntaxAxis& a, const std::string& what) {
    std::string extent = a.extent && a.relation == "<" ? text_of(a.extent->span) : "";
    if (const auto known = known_.extent(inside_, a.name)) extent = *known;
    bind(a.name, a.span,
         extent.empty() ? fmt::format("`{}`, {}", a.name, what)
                        : code_block(fmt::format("{} < {}", a.name, extent)) + what);
  }

  const uint32_t* find_local(std::string_view name) const {
    for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) {
      if (it->first == name) return &it->second;
    }
    return nullptr;
  }

  void use(std::string_view name, diag::Span span) {
    if (const uint32_t* local = find_local(name)) return add_use(span, *local);
    if (const auto it = globals_.find(name); it != globals_.end()) return add_use(span, it->second);
    if (const auto it = library_.find(name); it != library_.end()) return add_use(span, it->second);
    for (const spec::LibraryFunction& f : spec::library_functions()) {
      if (f.name != name) continue;
      const uint32_t meaning = add_meaning(
          fmt::format("{}{}\n\nof {}", code_block(f.text), f.about, f.file), std::nullopt);
      library_.emplace(name, meaning);
      return add_use(span, meaning);
    }
  }

  void visit(const expr::Syntax* s) {
    using Kind = expr::Syntax::Kind;
    if (!s) return;
    const size_t mark = locals_.size();
    switch (s->kind) {
      case Kind::Name:
      case Kind::Index:
        use(s->text, s->name_span);
        break;
      case Kind::Call:
        use(s->text, s->name_span);
        // An axis that the caller has, or one that the call binds in its arguments.
        for (const expr::SyntaxAxis& a : s->axes) {
          visit(a.extent);
          if (find_local(a.name))
            use(a.name, a.span);
          else
            bind_axis(a, fmt::format("an axis of `{}`", s->text));
        }
        break;
      case Kind::Reduce:
        for (const expr::SyntaxAxis& a : s->axes) visit(a.extent);
        visit(s->init);
        for (const expr::SyntaxAxis& a : s->axes) {
          if (a.name == "..") continue;
          // In a function an axis parameter is reduced over.
          if (inside_.empty() && find_local(a.name))
            use(a.name, a.span);
          else
            bind_axis(a, fmt::format("reduced by `{}`", s->text));
        }
        break;
      case Kind::Let:
        visit(s->args[0]);
        bind(s->text, s->name_span,
             code_block(fmt::format("{} = {}", s->text, text_of(s->args[0]->span))) +
                 "a part of the expression");
        visit(s->args[1]);
        locals_.resize(mark);
        return;
      case Kind::Repeat:
        rounds(*s);
        locals_.resize(mark);
        return;
      case Kind::Integer:
      case Kind::Float:
      case Kind::Inf:
      case Kind::Bool:
      case Kind::Prefix:
      case Kind::Infix:
      case Kind::Table:
        break;
    }
    for (const expr::Syntax* a : s->args) visit(a);
    locals_.resize(mark);
  }

  // The steps and the body see the names, the first values do not.
  void rounds(const expr::Syntax& s) {
    const size_t values = s.axes.size() - 1;
    for (size_t k = 0; k < values; ++k) visit(s.args[k]);
    visit(s.axes[values].extent);
    for (size_t k = 0; k < s.axes.size(); ++k) {
      const expr::SyntaxAxis& a = s.axes[k];
      if (a.name.empty()) continue;
      const std::string first =
          k == values ? "" : fmt::format("{} = {}", a.name, text_of(s.args[k]->span));
      bind(a.name, a.span,
           k == values ? "the number of the round, from 0"
                       : code_block(first) + "before the first round");
    }
    for (size_t k = values; k < s.args.size(); ++k) visit(s.args[k]);
  }

  uint32_t file_;
  const diag::SourceMap& sources_;
  const spec::MathSyntax& math_;
  const KnownTypes& known_;
  Analysis& out_;
  std::map<std::string_view, uint32_t> globals_;
  std::map<std::string_view, uint32_t> library_;
  std::vector<std::pair<std::string_view, uint32_t>> locals_;
  std::string_view inside_;  // the equation
};

}  // namespace

void add_names(const std::string& text, const std::optional<ir::Program>& program, Analysis& out) {
  diag::SourceMap sources;
  diag::Sink ignored{sources};
  const uint32_t file = sources.add("", text);
  const auto tokens = text::lex(file, ignored);
  if (!tokens) return;
  spec::MathSyntax math;
  spec::parse_math(file, math, ignored);
  const KnownTypes known(program);
  NameWalk(file, sources, math, known, out).run(*tokens);
}

}  // namespace nautilus::lsp
