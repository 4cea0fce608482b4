// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "expr/bounds/affine.h"
#include "expr/print.h"
#include "spec/facts/guards.h"
#include "spec/facts/ranges.h"
#include "spec/language/elaborator.h"
#include "spec/language/library.h"
#include "spec/language/precedence.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Syntax;
using ir::Expr;

std::optional<ir::Program> Elaborator::run(uint32_t file) {
  program_.level = &level();
  program_.name = program_name(sources_.path(file));
  if (!parse_math(file, math_, sink_)) return std::nullopt;
  warn_of_precedence(math_, sink_);
  load_library();
  sizes();
  scalars();
  define_sizes(true);
  tensors();
  facts_and_numerics();
  check_sizes();
  if (sink_.has_errors()) return std::nullopt;
  facts_ = ir::facts_of(program_, pool_);
  equations();
  if (sink_.has_errors()) return std::nullopt;
  outputs();
  if (sink_.has_errors()) return std::nullopt;
  return std::move(program_);
}

std::string Elaborator::program_name(std::string_view path) {
  std::string name(path.substr(path.find_last_of('/') + 1));
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "p" + name;
  return name;
}

// Strongly connected equations (Tarjan's algorithm): each list comes after those it reads.
void Elaborator::equations() {
  std::map<std::string_view, const EquationSyntax*> by_name;
  for (const EquationSyntax& e : math_.equations) by_name.emplace(e.name.text, &e);
  struct Visit {
    size_t number = 0;  // in the order of first visits; 0: none yet
    size_t lowest = 0;  // that is reached
    bool is_open = false;
  };
  std::map<const EquationSyntax*, Visit> visits;
  std::vector<const EquationSyntax*> open;
  auto visit = [&](auto& self, const EquationSyntax& e) -> void {
    Visit& own = visits[&e];
    own.number = own.lowest = visits.size();
    own.is_open = true;
    open.push_back(&e);
    bool reads_itself = false;
    for (std::string_view name : names_in(e)) {
      const auto it = by_name.find(name);
      if (it == by_name.end()) continue;
      reads_itself |= it->second == &e;
      const Visit& other = visits[it->second];
      if (other.number == 0) {
        self(self, *it->second);
        own.lowest = std::min(own.lowest, other.lowest);
      } else if (other.is_open) {
        own.lowest = std::min(own.lowest, other.number);
      }
    }
    if (own.lowest != own.number) return;
    Members members;
    do {
      members.push_back(open.back());
      visits[open.back()].is_open = false;
      open.pop_back();
    } while (members.back() != &e);
    if (!sink_.is_full()) together(std::move(members), reads_itself);
  };
  for (const EquationSyntax& e : math_.equations) {
    if (visits[&e].number == 0) visit(visit, e);
  }
}

void Elaborator::together(Members members, bool reads_itself) {
  if (members.size() == 1 && !reads_itself) {
    const EquationSyntax& e = *members[0];
    if (e.init) {
      sink_
          .report(Code::BadStatement, e.init->span,
                  fmt::format("`from` stands behind `{}`, which does not read itself", e.name.text))
          .with_help("an initial element is that of a recurrence, `Y[t] = Y[t-1] + X[t] from 0`");
      return;
    }
    auto made = equation(e);
    if (made) add({*std::move(made)});
    return;
  }
  std::sort(members.begin(), members.end(),
            [](const auto* x, const auto* y) { return x->left.begin < y->left.begin; });
  ScanSteps steps;
  if (is_scan(members, steps)) scan(steps);
}

void Elaborator::report_cycle(const std::vector<const EquationSyntax*>& path,
                              const EquationSyntax& again) {
  const auto first = std::find(path.begin(), path.end(), &again);
  if (path.end() - first == 1) {
    sink_.report(Code::Cycle, again.left,
                 fmt::format("`{}` is defined by itself", again.name.text));
    return;
  }
  std::string chain;
  for (auto e = first; e != path.end(); ++e) chain += fmt::format("`{}` reads ", (*e)->name.text);
  auto& d = sink_.report(Code::Cycle, again.left,
                         fmt::format("equations need each other: {}`{}`", chain, again.name.text));
  for (auto e = first + 1; e != path.end(); ++e) d.also((*e)->left, "");
}

std::vector<std::string_view> Elaborator::names_in(const Syntax& s) {
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

std::vector<std::string_view> Elaborator::names_in(const EquationSyntax& eq) {
  std::vector<std::string_view> names = names_in(*eq.body);
  if (eq.init) {
    for (std::string_view name : names_in(*eq.init)) names.push_back(name);
  }
  return names;
}

std::optional<Elaborator::Elaborated> Elaborator::equation(const EquationSyntax& eq) {
  Symbol* symbol = symbols_.find(eq.name.text);
  const bool is_open = symbol && symbol->kind == Symbol::Kind::Tensor &&
                       (!symbol->is_known || (symbol->state && symbol->state->is_open));
  if (!is_open) return std::nullopt;  // reported as a duplicate
  const bool is_declared = declared_outputs_.contains(eq.name.text);
  EquationScope scope(pool_.name(eq.name.text), pool_, sink_);
  ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
  Let let;
  let.name = pool_.name(eq.name.text);
  if (!left_side(eq, *symbol, is_declared, scope, elaborator, let)) return std::nullopt;
  const Typed body = elaborator.elaborate(*eq.body);
  if (!body || !scope.solve(facts_) || !stored_dtype(eq, *symbol, is_declared, body, let))
    return std::nullopt;
  let.body = pool_.cast(let.dtype, body.e);

  Elaborated out{&eq, {}, {}};
  auto complete = [&](Let l) {
    const auto& solution = scope.solution();
    l.body = expr::substitute(pool_, scope.with_written_names(l.body, l.axes), solution);
    for (ir::Axis& a : l.axes) a.extent = expr::substitute(pool_, a.extent, solution);
    return l;
  };
  for (const auto& [read, span] : elaborator.read_spans()) {
    out.spans.emplace(expr::substitute(pool_, read, scope.solution()), span);
  }
  for (const Let& l : elaborator.taken_out()) out.lets.push_back(complete(l));
  out.lets.push_back(complete(let));
  for (const Let& l : out.lets) {
    Symbol* s = symbols_.find(l.name.str());
    s->type = l.type();
    s->is_known = true;
  }
  return out;
}

void Elaborator::add(std::vector<Elaborated> all) {
  for (const ir::Op& op : program_.body) {
    if (const auto* input = op.get<Input>()) types_.emplace(input->name.str(), input->type);
  }
  for (const Elaborated& made : all) {
    for (const Let& l : made.lets) types_.insert_or_assign(std::string(l.name.str()), l.type());
  }
  for (Elaborated& made : all) {
    for (Let& l : made.lets) l.body = guard_conditions(l, facts_, types_, pool_);
    for (const Let& l : made.lets) {
      if (!check_ranges(l, facts_, {types_, made.spans, made.eq->left}, pool_, sink_)) break;
    }
    for (Let& l : made.lets) program_.body.push_back(ir::make(std::move(l), made.eq->left));
    if (made.eq->stored || declared_outputs_.contains(made.eq->name.text))
      outputs_.push_back(pool_.name(made.eq->name.text));
  }
}

bool Elaborator::left_side(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
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
    } else if (!are_equal(extent, symbol.type.dims[k], facts_, pool_)) {
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

bool Elaborator::stored_dtype(const EquationSyntax& eq, const Symbol& symbol, bool is_declared,
                              const Typed& body, Let& let) {
  let.dtype = body.e.dtype();
  if (!eq.stored && !is_declared) {
    if (!symbol.state || symbol.type.dtype == body.e.dtype()) return true;
    let.dtype = symbol.type.dtype;
    if (can_become(let.dtype, body) && body.hold != Hold::Firm) return true;
    sink_
        .report(Code::DTypeMismatch, eq.left,
                fmt::format("the initial element of `{}` is {}, a step gives {}", eq.name.text,
                            expr::name(let.dtype), expr::name(body.e.dtype())))
        .with_help(fmt::format("write a cast, `from {}(...)`", expr::name(body.e.dtype())));
    return false;
  }
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
              fmt::format("the equation gives {}, the tensor stores {}", expr::name(body.e.dtype()),
                          expr::name(let.dtype)))
      .with_help(fmt::format("write the cast, `{}(...)`", expr::name(let.dtype)));
  return false;
}

void Elaborator::outputs() {
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

std::optional<ir::Program> elaborate(uint32_t file, const ElaborateOptions& options,
                                     expr::ExprPool& pool, diag::SourceMap& sources,
                                     diag::Sink& sink) {
  return Elaborator(options, pool, sources, sink).run(file);
}

}  // namespace nautilus::spec
