// SPDX-License-Identifier: Apache-2.0
// Equations that need each other at the step before: a scan; a part of elaborator.h.
//
// The dtype of a state is unknown while the equations that read it, itself included, are
// elaborated. So a first elaboration only finds dtypes and extents: there a read of a state counts
// as a number in the text, as long as nothing else decides. Then all equations are elaborated like
// others.
#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "spec/language/elaborator.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Syntax;
using ir::Expr;

namespace {

// Reads of the equations in the text of one of them.
void reads_in(const Syntax& s, const EquationSyntax& reader,
              const std::map<std::string_view, const EquationSyntax*>& members,
              std::vector<ScanRead>& out) {
  if (s.kind == Syntax::Kind::Index) {
    const auto it = members.find(s.text);
    if (it != members.end()) out.push_back({&reader, it->second, &s});
  }
  for (const Syntax* a : s.args) reads_in(*a, reader, members, out);
  for (const expr::SyntaxAxis& a : s.axes) {
    if (a.extent) reads_in(*a.extent, reader, members, out);
  }
  if (s.init) reads_in(*s.init, reader, members, out);
}

bool is_step_back(const ScanRead& r, const ScanSteps& steps) {
  return step_index(*r.place->args[steps.along.at(r.read)], *r.reader).offset != 0;
}

}  // namespace

// A cycle among the equations, whatever they read.
void Elaborator::report_cycle_in(const Members& members) {
  std::vector<const EquationSyntax*> path;
  auto visit = [&](auto& self, const EquationSyntax& e) -> bool {
    if (std::find(path.begin(), path.end(), &e) != path.end()) {
      report_cycle(path, e);
      return true;
    }
    path.push_back(&e);
    for (std::string_view name : names_in(e)) {
      for (const EquationSyntax* m : members) {
        if (m->name.text == name && self(self, *m)) return true;
      }
    }
    path.pop_back();
    return false;
  };
  visit(visit, *members[0]);
}

bool Elaborator::is_scan(const Members& members, ScanSteps& steps) {
  std::vector<ScanRead> reads;
  if (!find_reads(members, reads) || !find_steps(reads, steps, sink_)) return false;
  if (steps.along.empty()) return report_cycle_in(members), false;
  return find_states(members, reads, steps) && order_steps(members, reads, steps);
}

bool Elaborator::find_reads(const Members& members, std::vector<ScanRead>& reads) {
  std::map<std::string_view, const EquationSyntax*> by_name;
  for (const EquationSyntax* m : members) by_name.emplace(m->name.text, m);
  for (const EquationSyntax* m : members) {
    const size_t first = reads.size();
    reads_in(*m->body, *m, by_name, reads);
    const auto names = names_in(*m->body);
    const auto named = std::count_if(names.begin(), names.end(),
                                     [&](std::string_view n) { return by_name.contains(n); });
    // Through a function, or at once in the initial element.
    bool is_other = static_cast<size_t>(named) != reads.size() - first;
    if (m->init) {
      for (std::string_view n : names_in(*m->init)) is_other |= by_name.contains(n);
    }
    if (is_other) return report_cycle_in(members), false;
  }
  return true;
}

bool Elaborator::find_states(const Members& members, const std::vector<ScanRead>& reads,
                             ScanSteps& steps) {
  for (const EquationSyntax* m : members) steps.is_state[m] = false;
  for (const ScanRead& r : reads) {
    if (!is_step_back(r, steps)) continue;
    steps.is_state[r.read] = true;
    if (r.read->init) continue;
    const auto& axis = r.reader->axes[steps.along.at(r.reader)].name;
    auto& d = sink_.report(
        Code::NoInitial, r.place->span,
        fmt::format("nothing says what `{}` is before its first step", r.read->name.text));
    d.also(r.read->left, "this equation needs an initial element");
    d.with_help(
        fmt::format("write it behind the equation, `... from 0`; a sum up to `{}` is `sum[k "
                    "{} {}] ...`",
                    axis, steps.is_up ? "<=" : ">=", axis));
    return false;
  }
  for (const EquationSyntax* m : members) {
    if (!m->init || steps.is_state[m]) continue;
    sink_
        .report(Code::BadStatement, m->init->span,
                fmt::format("`from` stands behind `{}`, which nothing reads at the step before",
                            m->name.text))
        .also(m->left, "");
    return false;
  }
  return true;
}

bool Elaborator::order_steps(const Members& members, const std::vector<ScanRead>& reads,
                             ScanSteps& steps) {
  std::map<const EquationSyntax*, int> done;  // 1: being visited, 2: done
  std::vector<const EquationSyntax*> path;
  auto visit = [&](auto& self, const EquationSyntax& e) -> bool {
    if (done[&e] == 2) return true;
    if (done[&e] == 1) return report_cycle(path, e), false;
    done[&e] = 1;
    path.push_back(&e);
    for (const ScanRead& r : reads) {
      if (r.reader == &e && !is_step_back(r, steps) && !self(self, *r.read)) return false;
    }
    path.pop_back();
    done[&e] = 2;
    steps.order.push_back(&e);
    return true;
  };
  return std::all_of(members.begin(), members.end(),
                     [&](const EquationSyntax* m) { return visit(visit, *m); });
}

// Gives a state its meaning for readers, as far as it is known before any equation is elaborated.
bool Elaborator::open_state(const EquationSyntax& eq, const ScanSteps& steps) {
  Symbol* symbol = symbols_.find(eq.name.text);
  if (!symbol || symbol->kind != Symbol::Kind::Tensor || symbol->is_known) return false;
  StateSymbol state;
  state.along = steps.along.at(&eq);
  state.is_up = steps.is_up;
  EquationScope scope(pool_.name(eq.name.text), pool_, sink_);
  ExprElaborator elaborator(symbols_, library_, scope, pool_, sink_);
  state.axes.resize(eq.axes.size());
  for (size_t k = 0; k < eq.axes.size(); ++k) {
    if (k == state.along) continue;
    // How far it runs is the equation's business.
    const Expr unknown = pool_.index(fmt::format("extent of {} {}", eq.name.text, k));
    state.axes[k] = scope.add_root(eq.axes[k].name, eq.axes[k].span, unknown);
    elaborator.bind_axis(eq.axes[k].name, state.axes[k]);
  }
  const Typed init = elaborator.elaborate(*eq.init);
  if (!init || !scope.solve(facts_)) return false;
  if (!elaborator.taken_out().empty()) {
    sink_
        .report(
            Code::BadStatement, eq.init->span,
            fmt::format("the initial element of `{}` is computed in several steps", eq.name.text))
        .with_help("give it an equation of its own");
    return false;
  }
  state.init = expr::substitute(pool_, init.e, scope.solution());
  const bool is_declared = declared_outputs_.contains(eq.name.text);
  if (!is_declared) symbol->type = {DType::F32, ir::Exprs(eq.axes.size())};
  if (eq.stored) symbol->type.dtype = *eq.stored;
  // One that is more than a number decides the dtype.
  if (!eq.stored && !is_declared && init.hold == Hold::Firm) symbol->type.dtype = init.e.dtype();
  state.is_number = !eq.stored && !is_declared && init.hold != Hold::Firm;
  const bool fits = can_become(symbol->type.dtype, init) ||
                    (init.hold == Hold::Literal && expr::is_int(init.e.dtype()));
  if (!state.is_number && !fits) {
    sink_.report(Code::DTypeMismatch, eq.init->span,
                 fmt::format("the initial element of `{}` is {}, the tensor {}", eq.name.text,
                             expr::name(init.e.dtype()), expr::name(symbol->type.dtype)));
    return false;
  }
  symbol->state = std::move(state);
  symbol->is_known = true;
  return true;
}

// Whether something about the type of the equation is known that was not.
bool Elaborator::find_type(const EquationSyntax& eq) {
  diag::Sink ignored(sources_);
  Symbols symbols = symbols_;
  EquationScope scope(pool_.name(eq.name.text), pool_, ignored);
  ExprElaborator elaborator(symbols, library_, scope, pool_, ignored);
  Symbol& symbol = *symbols_.find(eq.name.text);
  const bool is_declared = declared_outputs_.contains(eq.name.text);
  for (size_t k = 0; k < eq.axes.size(); ++k) {
    Expr extent;
    if (eq.axes[k].extent) extent = elaborator.elaborate_size(*eq.axes[k].extent);
    const Expr var = scope.add_root(eq.axes[k].name, eq.axes[k].span, extent);
    elaborator.bind_axis(eq.axes[k].name, var);
    if (is_declared && !extent) scope.use(var, symbol.type.dims[k], eq.axes[k].span, "");
  }
  const Typed body = elaborator.elaborate(*eq.body);
  if (!body) return false;
  bool is_changed = false;
  if (!symbol.is_known) {
    symbol.type = {body.e.dtype(), ir::Exprs(eq.axes.size())};
    if (eq.stored) symbol.type.dtype = *eq.stored;
    symbol.is_known = is_changed = true;
  }
  if (symbol.state && symbol.state->is_number) {
    const bool is_decided = body.hold != Hold::Literal;
    symbol.type.dtype = is_decided ? body.e.dtype() : DType::F32;
    symbol.state->is_number = false;
    is_changed = true;
  }
  scope.solve(facts_);
  for (size_t k = 0; k < eq.axes.size(); ++k) {
    if (symbol.type.dims[k]) continue;
    const Expr extent = scope.extent_of_root(k);
    symbol.type.dims[k] = extent;
    is_changed |= static_cast<bool>(extent);
  }
  return is_changed;
}

void Elaborator::find_types(const ScanSteps& steps) {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const EquationSyntax* m : steps.order) is_changed |= find_type(*m);
  }
  // f32 if nothing decides; errors are reported when the equation is elaborated.
  for (const EquationSyntax* m : steps.order) {
    Symbol& symbol = *symbols_.find(m->name.text);
    if (symbol.state) symbol.state->is_number = false;
    if (!symbol.state) symbol.is_known = false;
  }
}

void Elaborator::scan(const ScanSteps& steps) {
  // Readers of an equation with a reported error report nothing more.
  const auto forget = [&] {
    for (const EquationSyntax* m : steps.order) {
      Symbol* symbol = symbols_.find(m->name.text);
      if (symbol) symbol->is_known = false;
    }
  };
  for (const EquationSyntax* m : steps.order) {
    if (steps.is_state.at(m) && !open_state(*m, steps)) return forget();
  }
  find_types(steps);
  std::vector<Elaborated> all;
  for (const EquationSyntax* m : steps.order) {
    auto made = equation(*m);
    if (!made) return forget();
    all.push_back(*std::move(made));
  }
  for (const Elaborated& made : all) {
    Symbol& symbol = *symbols_.find(made.eq->name.text);
    if (!symbol.state) continue;
    symbol.state->is_open = false;
    State state{made.lets.back().name, made.lets.back().type(),
                static_cast<int64_t>(symbol.state->along),
                symbol.state->is_up ? Direction::Up : Direction::Down};
    program_.body.push_back(ir::make(std::move(state), made.eq->left));
  }
  add(std::move(all));
}

}  // namespace nautilus::spec
