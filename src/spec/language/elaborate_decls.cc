// SPDX-License-Identifier: Apache-2.0
// Declarations: functions, sizes, scalars, tensors, facts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/print.h"
#include "expr/walk.h"
#include "spec/facts/ranges.h"
#include "spec/language/elaborator.h"
#include "spec/language/library.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Syntax;
using ir::Expr;

void Elaborator::load_library() {
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

void Elaborator::add_function(const FunctionSyntax& f, Symbols& table) {
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

Expr Elaborator::closed_size(const Syntax& s) {
  EquationScope scope(pool_, sink_);
  ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
  const Expr e = elaborator.elaborate_size(s);
  return e ? simplifier_.simplify(e) : e;
}

std::map<std::string_view, int64_t> Elaborator::hints() {
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
  return hints;
}

void Elaborator::define_static(const StaticSyntax& s) {
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
      return;
    }
    if (e.op() != expr::Op::IntConst) {
      sink_
          .report(Code::BadStatement, s.value->span,
                  fmt::format("the value of static `{}` is not a number", s.name.text))
          .with_help(
              "a static size is an integer expression of earlier statics; symbolic sizes are "
              "declared with `dims`");
      return;
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

void Elaborator::sizes() {
  for (const NameSyntax& d : math_.dims) {
    symbols_.add(d, {Symbol::Kind::Size, {}, pool_.index(d.text), {}, {}, true, nullptr}, sink_);
  }
  const auto known = hints();
  for (const NameSyntax& d : math_.dims) {
    ir::OptionalInt hint;
    if (const auto it = known.find(d.text); it != known.end()) hint = it->second;
    program_.body.push_back(ir::make(Dim{pool_.name(d.text), hint, {}}, d.span));
  }
  for (const StaticSyntax& s : math_.statics) define_static(s);
  for (const StaticSyntax& s : math_.sizes) open_sizes_.push_back(&s);
  define_sizes(false);
}

void Elaborator::scalars() {
  for (const ScalarSyntax& s : math_.scalars) {
    Param param{pool_.name(s.name.text), s.dtype, {}};
    if (s.init) {
      EquationScope scope(pool_, sink_);
      ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
      Typed value = elaborator.elaborate(*s.init);
      if (value && (expr::has_reduce(value.e) || !expr::tensors_read(value.e).empty())) {
        sink_
            .report(
                Code::BadStatement, s.init->span,
                fmt::format("the default of scalar `{}` must be an expression of sizes and scalars",
                            s.name.text))
            .with_help(fmt::format("a tensor without axes is written `{}[] = ...`", s.name.text));
      } else if (value) {
        if (is_too_large(s.dtype, value.e)) {
          sink_.report(Code::BadLiteral, s.init->span,
                       fmt::format("{} does not fit {}", value.e.integer(), expr::name(s.dtype)));
        } else if (!can_become(s.dtype, value)) {
          sink_.report(Code::DTypeMismatch, s.init->span,
                       fmt::format("the default of `{}` is {}, the scalar is {}", s.name.text,
                                   expr::name(value.e.dtype()), expr::name(s.dtype)));
        }
        param.init = simplifier_.simplify(pool_.cast(s.dtype, value.e));
      }
    }
    symbols_.add(s.name,
                 {Symbol::Kind::Scalar, {}, pool_.var(param.name, s.dtype), {}, {}, true, nullptr},
                 sink_);
    program_.body.push_back(ir::make(param, s.name.span));
    define_sizes(false);
  }
}

void Elaborator::tensors() {
  std::map<std::string_view, const EquationSyntax*> defined;
  for (const EquationSyntax& e : math_.equations) {
    if (!defined.emplace(e.name.text, &e).second) {
      sink_.report(Code::Duplicate, e.name.span, fmt::format("`{}` has two equations", e.name.text))
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

namespace {

using Divisions = std::vector<std::pair<Expr, diag::Span>>;

// The divisors of a fact, in the comparisons of its conjunction.
void collect_divisors(Expr fact, diag::Span span, Divisions& out) {
  for (Expr part : expr::conjuncts(fact)) {
    if (!is_comparison(part.op())) continue;
    expr::for_each(part, [&](Expr e) {
      if ((e.op() != expr::Op::FloorDiv && e.op() != expr::Op::Mod) || e[1].is_const()) return;
      const bool is_new = std::none_of(out.begin(), out.end(),
                                       [&](const auto& known) { return known.first == e[1]; });
      if (is_new) out.emplace_back(e[1], span);
    });
  }
}

}  // namespace

void Elaborator::facts_and_numerics() {
  Divisions divisors;
  for (const Syntax* f : math_.facts) {
    EquationScope scope(pool_, sink_);
    const Typed t = ExprElaborator(symbols_, library_, scope, pool_, sink_).elaborate(*f);
    if (!t) continue;
    if (t.e.dtype() != DType::Bool || expr::has_reduce(t.e) || !expr::tensors_read(t.e).empty()) {
      sink_.report(Code::BadStatement, f->span, "a fact is a condition over sizes and scalars");
      continue;
    }
    program_.body.push_back(ir::make(Fact{t.e}, f->span));
    collect_divisors(t.e, f->span, divisors);
  }
  // A fact that divides says that there is something to divide by: the remainder by 0 is 0, and
  // would make `N % G == 0` true where N has no quotient.
  const expr::Facts known = ir::facts_of(program_, pool_);
  for (const auto& [divisor, span] : divisors) {
    const bool is_size = divisor.op() == expr::Op::Var && divisor.dtype() == DType::I64 &&
                         symbols_.find(divisor.name().str())->kind == Symbol::Kind::Size;
    const Expr condition =
        is_size ? pool_.binary(expr::Op::Ge, divisor, pool_.integer(1))
                : pool_.binary(expr::Op::Ne, divisor, pool_.integer(0, divisor.dtype()));
    if (known.prove(condition) != expr::Truth::True)
      program_.body.push_back(ir::make(Fact{condition}, span));
  }
  if (math_.numerics.size() > 1) {
    sink_.report(Code::Duplicate, math_.numerics[1].span, "`numerics` is stated twice")
        .also(math_.numerics[0].span, "the first one");
  }
  if (!math_.numerics.empty()) {
    const NumericsSyntax& n = math_.numerics[0];
    if (n.roundings.size() > 1) {
      sink_
          .report(Code::Duplicate, n.roundings[1].second,
                  "`numerics` says twice how operands may be rounded")
          .also(n.roundings[0].second, "the first one");
    }
    program_.body.push_back(ir::make(
        Numerics{n.roundings.empty() ? ir::Rounding::Licensed : n.roundings[0].first, n.rel, n.abs},
        n.span));
  }
}

}  // namespace nautilus::spec
