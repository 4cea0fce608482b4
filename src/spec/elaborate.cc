// SPDX-License-Identifier: Apache-2.0
#include "spec/elaborate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "expr/affine.h"
#include "expr/print.h"
#include "expr/simplify.h"
#include "spec/elaborate_expr.h"
#include "spec/library.h"
#include "spec/ranges.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Syntax;
using ir::Expr;

namespace {

class Elaborator {
 public:
  Elaborator(const ElaborateOptions& options, expr::ExprPool& pool, diag::SourceMap& sources,
             diag::Sink& sink)
      : options_(options), pool_(pool), sources_(sources), sink_(sink), simplifier_(pool) {}

  std::optional<ir::Program> run(uint32_t file) {
    program_.level = &level();
    program_.name = program_name(sources_.path(file));
    if (!parse_math(file, math_, sink_)) return std::nullopt;
    load_library();
    sizes();
    scalars();
    tensors();
    facts_and_numerics();
    if (sink_.has_errors()) return std::nullopt;
    facts_ = ir::facts_of(program_, pool_);
    equations();
    if (sink_.has_errors()) return std::nullopt;
    outputs();
    if (sink_.has_errors()) return std::nullopt;
    return std::move(program_);
  }

 private:
  static std::string program_name(std::string_view path) {
    std::string name(path.substr(path.find_last_of('/') + 1));
    name = name.substr(0, name.find('.'));
    for (char& c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "p" + name;
    return name;
  }

  void load_library() {
    for (const FunctionSyntax& f : math_.functions) add_function(f, symbols_);
    for (const LibraryText& text : library_texts()) {
      MathSyntax& lib = libraries_.emplace_back();
      const bool ok =
          parse_math(sources_.add(std::string(text.path), std::string(text.text)), lib, sink_);
      NAUT_CHECK(ok, "the library text {} does not parse", text.path);
      for (FunctionSyntax& f : lib.functions) {
        f.is_library = true;
        add_function(f, library_);
      }
    }
  }

  void add_function(const FunctionSyntax& f, Symbols& table) {
    Symbol symbol{Symbol::Kind::Function, {}, {}, {}, {}, true, &f};
    if (!table.add(f.name, symbol, sink_)) return;
    std::set<std::string_view> seen;
    for (const auto* list : {&f.axes, &f.params}) {
      for (const NameSyntax& n : *list) {
        if (!seen.insert(n.text).second) {
          sink_.report(Code::Duplicate, n.span,
                       fmt::format("the parameter `{}` is named twice", n.text));
        }
      }
    }
  }

  // An expression outside of any equation: no axes.
  Expr closed_size(const Syntax& s) {
    EquationScope scope(pool_.name("size"), pool_, sink_);
    ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
    const Expr e = elaborator.elaborate_size(s);
    return e ? simplifier_.simplify(e) : e;
  }

  void sizes() {
    for (const NameSyntax& d : math_.dims) {
      symbols_.add(d, {Symbol::Kind::Size, {}, pool_.index(d.text), {}, {}, true, nullptr}, sink_);
    }
    std::map<std::string_view, int64_t> hints;
    for (const HintSyntax& h : math_.hints) {
      const bool is_dim = std::any_of(math_.dims.begin(), math_.dims.end(),
                                      [&](const NameSyntax& d) { return d.text == h.name.text; });
      if (!is_dim) {
        std::vector<std::string> names;
        for (const NameSyntax& d : math_.dims) names.emplace_back(d.text);
        auto& d = sink_.report(
            Code::UndefinedName, h.name.span,
            fmt::format("the hint names `{}`, which is not among the dims", h.name.text));
        const auto near = base::nearest_name(h.name.text, names);
        if (!near.empty()) d.with_help(fmt::format("did you mean `{}`?", near));
      }
      if (!hints.emplace(h.name.text, h.value).second) {
        sink_.report(Code::Duplicate, h.name.span, fmt::format("`{}` has two hints", h.name.text));
      }
    }
    for (const NameSyntax& d : math_.dims) {
      ir::OptionalInt hint;
      if (const auto it = hints.find(d.text); it != hints.end()) hint = it->second;
      program_.body.push_back(ir::make(Dim{pool_.name(d.text), hint}, d.span));
    }
    for (const StaticSyntax& s : math_.statics) {
      int64_t value = 0;
      if (const auto it = options_.statics.find(std::string(s.name.text));
          it != options_.statics.end()) {
        value = it->second;
      } else {
        const Expr e = closed_size(*s.value);
        if (!e) {
          // Keep the name known, so that its uses are not reported as well.
          symbols_.add(s.name, {Symbol::Kind::Size, {}, pool_.integer(1), {}, {}, true, nullptr},
                       sink_);
          continue;
        }
        if (e.op() != expr::Op::IntConst) {
          sink_
              .report(Code::BadStatement, s.value->span,
                      fmt::format("the value of static `{}` is not a number", s.name.text))
              .with_help(
                  "a static size is an integer expression of earlier statics; symbolic sizes are "
                  "declared with `dims`");
          continue;
        }
        value = e.integer();
      }
      if (value < 1) {
        sink_.report(Code::BadStatement, s.name.span,
                     fmt::format("static `{}` is {}; it must be at least 1", s.name.text, value));
      }
      symbols_.add(s.name, {Symbol::Kind::Size, {}, pool_.integer(value), {}, {}, true, nullptr},
                   sink_);
      program_.body.push_back(ir::make(Static{pool_.name(s.name.text), value}, s.name.span));
    }
  }

  void scalars() {
    for (const ScalarSyntax& s : math_.scalars) {
      Param param{pool_.name(s.name.text), s.dtype, {}};
      if (s.init) {
        EquationScope scope(param.name, pool_, sink_);
        ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
        Typed value = elaborator.elaborate(*s.init);
        if (value && (expr::has_reduce(value.e) || !expr::tensors_read(value.e).empty())) {
          sink_
              .report(Code::BadStatement, s.init->span,
                      fmt::format(
                          "the default of scalar `{}` must be an expression of sizes and scalars",
                          s.name.text))
              .with_help(fmt::format("a tensor without axes is written `{}[] = ...`", s.name.text));
        } else if (value) {
          const bool fits =
              can_store(s.dtype, value.e.dtype()) ||
              (value.hold != Hold::Firm && is_float(s.dtype) && value.e.dtype() != DType::Bool);
          if (!fits) {
            sink_.report(Code::DTypeMismatch, s.init->span,
                         fmt::format("the default of `{}` is {}, the scalar is {}", s.name.text,
                                     expr::name(value.e.dtype()), expr::name(s.dtype)));
          }
          param.init = simplifier_.simplify(pool_.cast(s.dtype, value.e));
        }
      }
      symbols_.add(
          s.name, {Symbol::Kind::Scalar, {}, pool_.var(param.name, s.dtype), {}, {}, true, nullptr},
          sink_);
      program_.body.push_back(ir::make(param, s.name.span));
    }
  }

  void tensors() {
    std::map<std::string_view, const EquationSyntax*> defined;
    for (const EquationSyntax& e : math_.equations) {
      if (!defined.emplace(e.name.text, &e).second) {
        sink_
            .report(Code::Duplicate, e.name.span,
                    fmt::format("`{}` has two equations", e.name.text))
            .label("the second equation")
            .also(defined[e.name.text]->name.span, "the first one");
      }
    }
    for (const TensorSyntax& t : math_.tensors) {
      Symbol symbol{Symbol::Kind::Tensor, {}, {}, {t.dtype, {}}, {}, true, nullptr};
      for (const Syntax* d : t.dims) {
        const Expr e = closed_size(*d);
        if (!e) break;
        symbol.type.dims.push_back(e);
        symbol.dim_spans.push_back(d->span);
      }
      if (symbol.type.dims.size() != t.dims.size()) {
        symbol.is_known = false;
        symbols_.add(t.name, symbol, sink_);
        continue;
      }
      const bool is_output = defined.contains(t.name.text);
      symbol.is_known = !is_output;
      if (!symbols_.add(t.name, symbol, sink_)) continue;
      if (is_output) {
        declared_outputs_.insert(t.name.text);
      } else {
        program_.body.push_back(ir::make(Input{pool_.name(t.name.text), symbol.type}, t.name.span));
      }
    }
    for (const EquationSyntax& e : math_.equations) {
      if (defined[e.name.text] != &e || declared_outputs_.contains(e.name.text)) continue;
      symbols_.add(e.name, {Symbol::Kind::Tensor, {}, {}, {}, {}, false, nullptr}, sink_);
    }
  }

  void facts_and_numerics() {
    for (const Syntax* f : math_.facts) {
      EquationScope scope(pool_.name("fact"), pool_, sink_);
      const Typed t = ExprElaborator(symbols_, library_, scope, pool_, sink_).elaborate(*f);
      if (!t) continue;
      if (t.e.dtype() != DType::Bool || expr::has_reduce(t.e) || !expr::tensors_read(t.e).empty()) {
        sink_.report(Code::BadStatement, f->span, "a fact is a condition over sizes and scalars");
        continue;
      }
      program_.body.push_back(ir::make(Fact{t.e}, f->span));
    }
    if (math_.numerics.size() > 1) {
      sink_.report(Code::Duplicate, math_.numerics[1].span, "`numerics` is stated twice")
          .also(math_.numerics[0].span, "the first one");
    }
    if (!math_.numerics.empty()) {
      const NumericsSyntax& n = math_.numerics[0];
      program_.body.push_back(ir::make(
          Numerics{n.is_exact ? ir::Rounding::Exact : ir::Rounding::Licensed, n.rel, n.abs},
          n.span));
    }
  }

  // Depth first over the tensors an equation reads, so that types are known; the text may have any
  // order.
  void equations() {
    std::map<std::string_view, const EquationSyntax*> by_name;
    for (const EquationSyntax& e : math_.equations) by_name.emplace(e.name.text, &e);
    std::map<std::string_view, int> state;  // 1: being visited, 2: done
    std::vector<const EquationSyntax*> path;
    auto visit = [&](auto& self, const EquationSyntax& e) -> void {
      if (sink_.is_full()) return;
      int& s = state[e.name.text];
      if (s == 2) return;
      if (s == 1) return report_cycle(path, e);
      s = 1;
      path.push_back(&e);
      for (std::string_view name : names_in(*e.body)) {
        if (const auto it = by_name.find(name); it != by_name.end()) self(self, *it->second);
      }
      path.pop_back();
      state[e.name.text] = 2;
      equation(e);
    };
    for (const EquationSyntax& e : math_.equations) visit(visit, e);
  }

  void report_cycle(const std::vector<const EquationSyntax*>& path, const EquationSyntax& again) {
    std::string chain;
    bool is_inside = false;
    for (const EquationSyntax* e : path) {
      is_inside |= e == &again;
      if (is_inside) chain += fmt::format("`{}` reads ", e->name.text);
    }
    // "`A` reads `B` reads `A`" is read from the first equation of the cycle.
    auto& d =
        sink_.report(Code::Cycle, again.left,
                     fmt::format("equations need each other: {}`{}`", chain, again.name.text));
    for (const EquationSyntax* e : path) {
      if (e != &again) d.also(e->left, "");
    }
  }

  // Tensor names an expression mentions, function bodies included (a function may read tensors of
  // the program).
  std::vector<std::string_view> names_in(const Syntax& s) {
    std::vector<std::string_view> out;
    std::set<std::string_view> functions;
    auto go = [&](auto& self, const Syntax& x) -> void {
      if (x.kind == Syntax::Kind::Index) out.push_back(x.text);
      if (x.kind == Syntax::Kind::Call) {
        const Symbol* symbol = symbols_.find(x.text);
        if (symbol && symbol->function && functions.insert(x.text).second)
          self(self, *symbol->function->body);
      }
      for (const Syntax* a : x.args) self(self, *a);
      for (const expr::SyntaxAxis& a : x.axes) {
        if (a.extent) self(self, *a.extent);
      }
      if (x.init) self(self, *x.init);
    };
    go(go, s);
    return out;
  }

  void equation(const EquationSyntax& eq) {
    Symbol* symbol = symbols_.find(eq.name.text);
    if (!symbol || symbol->kind != Symbol::Kind::Tensor || symbol->is_known)
      return;  // reported as a duplicate
    const bool is_declared = declared_outputs_.contains(eq.name.text);
    EquationScope scope(pool_.name(eq.name.text), pool_, sink_);
    ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
    Let let;
    let.name = pool_.name(eq.name.text);
    if (!left_side(eq, *symbol, is_declared, scope, elaborator, let)) return;
    const Typed body = elaborator.elaborate(*eq.body);
    if (!body || !scope.solve() || !stored_dtype(eq, *symbol, is_declared, body, let)) return;
    let.body = pool_.cast(let.dtype, body.e);

    std::unordered_map<Expr, diag::Span> spans;
    auto complete = [&](Let l) {
      const auto& solution = scope.solution();
      l.body = expr::substitute(pool_, scope.with_written_names(l.body), solution);
      for (ir::Axis& a : l.axes) a.extent = expr::substitute(pool_, a.extent, solution);
      return l;
    };
    for (const auto& [read, span] : elaborator.read_spans()) {
      spans.emplace(expr::substitute(pool_, read, scope.solution()), span);
    }
    std::vector<Let> all;
    for (const Let& l : elaborator.taken_out()) all.push_back(complete(l));
    all.push_back(complete(let));
    for (const Let& l : all) {
      types_.insert_or_assign(std::string(l.name.str()), l.type());
      Symbol* s = symbols_.find(l.name.str());
      s->type = l.type();
      s->is_known = true;
    }
    for (const ir::Op& op : program_.body) {
      if (const auto* input = op.get<Input>()) types_.emplace(input->name.str(), input->type);
    }
    for (const Let& l : all) {
      if (!check_ranges(l, facts_, {types_, spans, eq.left}, pool_, sink_)) break;
    }
    for (Let& l : all) program_.body.push_back(ir::make(std::move(l), eq.left));
    if (eq.stored || is_declared) outputs_.push_back(pool_.name(eq.name.text));
  }

  bool left_side(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
                 EquationScope& scope, ExprElaborator& elaborator, Let& let) {
    if (is_declared && symbol.type.dims.size() != eq.axes.size()) {
      sink_
          .report(Code::WrongRank, eq.left,
                  fmt::format("`{}` is declared with {} dimensions, the equation has {} axes",
                              eq.name.text, symbol.type.dims.size(), eq.axes.size()))
          .also(symbol.span, "declared here");
      return false;
    }
    std::set<std::string_view> seen;
    for (size_t k = 0; k < eq.axes.size(); ++k) {
      const expr::SyntaxAxis& a = eq.axes[k];
      if (!seen.insert(a.name).second) {
        sink_.report(Code::AxisConflict, a.span,
                     fmt::format("the axis `{}` stands twice on the left side", a.name));
        return false;
      }
      if (const Symbol* other = symbols_.find(a.name)) {
        sink_
            .report(Code::AxisConflict, a.span,
                    fmt::format("the axis `{}` has the name of {}", a.name, describe(other->kind)))
            .also(other->span, "defined here");
        return false;
      }
      Expr extent;
      if (a.extent && !(extent = elaborator.elaborate_size(*a.extent))) return false;
      if (extent) extent = simplifier_.simplify(extent);
      const Expr var = scope.add_root(a.name, a.span, extent);
      elaborator.bind_axis(a.name, var);
      let.axes.push_back({var.name(), scope.extent(var)});
      if (!is_declared) continue;
      const std::string where = fmt::format("dimension {} of `{}` is declared as {}", k + 1,
                                            eq.name.text, expr::to_string(symbol.type.dims[k]));
      if (!extent) {
        scope.use(var, symbol.type.dims[k], symbol.dim_spans[k], where);
      } else if (!expr::same_index(extent, symbol.type.dims[k])) {
        sink_
            .report(Code::ShapeMismatch, a.span,
                    fmt::format("axis `{}` has extent {}, the declaration says {}", a.name,
                                expr::to_string(extent), expr::to_string(symbol.type.dims[k])))
            .also(symbol.dim_spans[k], where);
        return false;
      }
    }
    return true;
  }

  bool stored_dtype(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
                    const Typed& body, Let& let) {
    let.dtype = body.e.dtype();
    if (!eq.stored && !is_declared) return true;
    let.dtype = eq.stored ? *eq.stored : symbol.type.dtype;
    if (is_declared && let.dtype != symbol.type.dtype) {
      sink_
          .report(Code::DTypeMismatch, eq.stored_span,
                  fmt::format("`{}` is declared as {}, stored as {}", eq.name.text,
                              expr::name(symbol.type.dtype), expr::name(let.dtype)))
          .also(symbol.span, "declared here");
      return false;
    }
    const bool fits =
        can_store(let.dtype, body.e.dtype()) ||
        (body.hold != Hold::Firm && is_float(let.dtype) && body.e.dtype() != DType::Bool);
    if (fits) return true;
    sink_
        .report(Code::DTypeMismatch, eq.stored ? eq.stored_span : eq.left,
                fmt::format("the equation gives {}, the tensor stores {}",
                            expr::name(body.e.dtype()), expr::name(let.dtype)))
        .with_help(fmt::format("write the cast, `{}(...)`", expr::name(let.dtype)));
    return false;
  }

  void outputs() {
    std::set<std::string_view> read;
    for (const ir::Op& op : program_.body) {
      if (const auto* let = op.get<Let>()) {
        for (ir::Name n : expr::tensors_read(let->body)) read.insert(n.str());
      }
    }
    std::set<std::string_view> handed_over;
    for (ir::Name n : outputs_) handed_over.insert(n.str());
    for (const EquationSyntax& e : math_.equations) {
      if (read.contains(e.name.text) || handed_over.contains(e.name.text)) continue;
      sink_
          .report(Code::Unused, e.left,
                  fmt::format("`{}` is neither read nor an output", e.name.text))
          .with_help("mark an output with its storage dtype: `-> bf16`");
    }
    if (outputs_.empty()) {
      const diag::Span at =
          math_.equations.empty() ? diag::Span{1, 0, 0} : math_.equations.back().left;
      sink_.report(Code::BadStatement, at, "the program has no output")
          .with_help("mark at least one equation with its storage dtype: `-> f32`");
    }
    for (const EquationSyntax& e : math_.equations) {
      if (handed_over.contains(e.name.text))
        program_.body.push_back(ir::make(Output{pool_.name(e.name.text)}, e.left));
    }
  }

  const ElaborateOptions& options_;
  expr::ExprPool& pool_;
  diag::SourceMap& sources_;
  diag::Sink& sink_;
  expr::Simplifier simplifier_;
  MathSyntax math_;
  std::deque<MathSyntax> libraries_;
  Symbols symbols_;
  Symbols library_;
  std::set<std::string_view> declared_outputs_;
  std::map<std::string, ir::TensorType> types_;
  std::vector<ir::Name> outputs_;
  expr::Facts facts_;
  ir::Program program_;
};

}  // namespace

std::optional<ir::Program> elaborate(uint32_t file, const ElaborateOptions& options,
                                     expr::ExprPool& pool, diag::SourceMap& sources,
                                     diag::Sink& sink) {
  return Elaborator(options, pool, sources, sink).run(file);
}

}  // namespace nautilus::spec
