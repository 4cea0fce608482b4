// SPDX-License-Identifier: Apache-2.0
#include "spec/language/equation_scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {

using diag::Code;
using ir::Expr;

std::string EquationScope::unique(std::string_view name) {
  std::string candidate(name);
  for (int n = 2; !names_.insert(candidate).second; ++n) candidate = fmt::format("{}_{}", name, n);
  return candidate;
}

Expr EquationScope::add_root(std::string_view name, diag::Span span, Expr extent) {
  const bool is_written = static_cast<bool>(extent);
  // The blank keeps placeholders apart from every name a text can contain.
  const Expr placeholder =
      is_written ? extent : pool_.index(fmt::format("extent {}", roots_.size()));
  const Expr var = pool_.index(unique(name));
  roots_.push_back({std::string(name), span, var, placeholder, is_written, {}});
  root_of_.emplace(var, roots_.size() - 1);
  return var;
}

bool EquationScope::has_axis(Expr e) const {
  const auto vars = expr::free_vars(e);
  return std::any_of(vars.begin(), vars.end(), [&](Expr v) { return is_axis(v); });
}

Expr EquationScope::fresh(Expr var) {
  const size_t root = root_of_.at(var);
  const Expr copy = pool_.index(unique(roots_[root].name));
  root_of_.emplace(copy, root);
  return copy;
}

void EquationScope::use(Expr var, Expr extent, diag::Span span, std::string where) {
  roots_[root_of_.at(var)].uses.push_back({extent, span, std::move(where)});
}

Expr EquationScope::with_written_names(Expr body, const ir::Axes& axes) const {
  std::vector<Expr> bound;
  expr::for_each(body, [&](Expr e) {
    if (e.op() != expr::Op::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) bound.push_back(e.axis(k));
  });
  std::set<Expr, expr::ByContent> taken;
  for (Expr v : expr::free_vars(body)) taken.insert(v);
  for (Expr v : bound) taken.insert(v);
  for (const ir::Axis& a : axes) taken.insert(pool_.index(a.name));
  expr::Substitution map;
  for (Expr v : bound) {
    const auto it = root_of_.find(v);
    if (it == root_of_.end() || map.contains(v)) continue;
    const Expr written = roots_[it->second].var;
    if (v != written && taken.insert(written).second) map.emplace(v, written);
  }
  return expr::substitute(pool_, body, map);
}

void EquationScope::use_links() {
  const auto give = [&](size_t from, size_t to) {
    const Root& source = roots_[from];
    Root& root = roots_[to];
    if (root.is_written || !root.uses.empty()) return false;
    if (!source.is_written && source.uses.empty()) return false;
    const Expr extent = source.is_written ? source.placeholder : source.uses[0].extent;
    root.uses.push_back(
        {extent, root.span, fmt::format("`{}` has the extent of `{}`", root.name, source.name)});
    return true;
  };
  bool is_changed = true;
  while (is_changed) {
    is_changed = false;
    for (const auto& [a, b] : links_) is_changed |= give(a, b) || give(b, a);
  }
}

Expr EquationScope::extent_of_root(size_t k) const {
  if (roots_[k].is_written) return roots_[k].placeholder;
  const auto it = solution_.find(roots_[k].placeholder);
  return it == solution_.end() ? Expr() : it->second;
}

bool EquationScope::solve(const expr::Facts& facts) {
  bool ok = true;
  use_links();
  for (const Root& root : roots_) {
    if (root.is_written) continue;
    if (root.uses.empty()) {
      sink_
          .report(Code::NotInferable, root.span,
                  fmt::format("the extent of axis `{}` cannot be inferred", root.name))
          .label("no tensor is indexed by this axis alone")
          .with_help(fmt::format("write it: `{} < ...`", root.name));
      ok = false;
      continue;
    }
    const Use& first = root.uses[0];
    for (const Use& use : root.uses) {
      // Extents that wait for other axes are equal only if they are the same.
      if (are_equal(first.extent, use.extent, facts, pool_)) continue;
      sink_
          .report(Code::ShapeMismatch, use.span,
                  fmt::format("axis `{}` has extent {} here and {} elsewhere", root.name,
                              expr::to_string(use.extent), expr::to_string(first.extent)))
          .label(use.where)
          .also(first.span, first.where)
          .with_help(
              fmt::format("if one range is meant for both, write it: `{} < ...`", root.name));
      ok = false;
      break;
    }
    solution_.emplace(root.placeholder, first.extent);
  }
  return ok;
}

}  // namespace nautilus::spec
