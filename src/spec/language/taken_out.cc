// SPDX-License-Identifier: Apache-2.0
#include "spec/language/taken_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "ir/flat_name.h"

namespace nautilus::spec {

using expr::Op;
using expr::Syntax;
using ir::Expr;
using Form = Syntax::Kind;

namespace {

bool is_leaf(Expr e) {
  return e.args().empty() || e.op() == Op::Read || (e.op() == Op::Cast && is_leaf(e[0]));
}

}  // namespace

std::vector<Expr> TakenOut::axes_as_they_lie(Expr value) const {
  std::vector<Expr> rest;
  for (Expr var : expr::free_vars(value)) {
    if (scope_.axes.is_axis(var)) rest.push_back(var);
  }
  std::vector<Expr> order;
  expr::for_each(value, [&](Expr e) {
    if (e.op() != Op::Read) return;
    std::vector<Expr> own;
    for (Expr index : e.args()) {
      if (std::find(rest.begin(), rest.end(), index) != rest.end() &&
          std::find(own.begin(), own.end(), index) == own.end())
        own.push_back(index);
    }
    if (own.size() > order.size()) order = std::move(own);
  });
  for (Expr var : rest) {
    if (std::find(order.begin(), order.end(), var) != order.end()) continue;
    const auto behind = std::find_if(order.begin(), order.end(),
                                     [&](Expr o) { return scope_.axes.is_before(var, o); });
    order.insert(behind, var);
  }
  return order;
}

std::string TakenOut::name_of(std::string_view part) const {
  const std::string_view equation = scope_.axes.equation().str();
  std::string full = fmt::format("{}.{}", equation, part);
  for (int n = 2; scope_.symbols.find(full) || scope_.symbols.find(ir::flat_name(full)); ++n)
    full = fmt::format("{}.{}_{}", equation, part, n);
  return full;
}

Typed TakenOut::share(Typed value, std::string_view name, Occurrences uses, bool is_round) {
  if (uses.count < 2 || scope_.guards > 0 || uses.is_always_guarded || is_leaf(value.e) ||
      value.hold != Hold::Firm)
    return value;
  // A scalar computation stays in its place, but rounds of one would double it each time.
  if (axes_as_they_lie(value.e).empty() && !is_round) return value;
  return {take_out(value.e, value.e.op() == Op::Reduce ? expr::name(value.e.reducer()) : name)};
}

Expr TakenOut::take_out(Expr value, std::string_view part) {
  if (const auto it = shared_.find(value); it != shared_.end()) return it->second;
  const std::vector<Expr> indices = axes_as_they_lie(value);
  ir::Axes axes;
  for (Expr var : indices) axes.push_back({var.name(), scope_.axes.extent(var)});
  const ir::Name name = define(part, std::move(axes), value);
  const Expr read = scope_.pool.read(name, value.dtype(), indices);
  shared_.emplace(value, read);
  return read;
}

ir::Name TakenOut::define(std::string_view part, ir::Axes axes, Expr body) {
  Let let;
  let.name = scope_.pool.name(name_of(part));
  let.axes = std::move(axes);
  let.dtype = body.dtype();
  let.body = body;
  scope_.symbols.add({let.name.str(), {}},
                     {Symbol::Kind::Tensor, {}, {}, let.type(), {}, true, nullptr}, scope_.sink);
  lets_.push_back(let);
  return let.name;
}

Occurrences occurrences(const Syntax& s, std::string_view name) {
  Occurrences out;
  if (s.kind == Form::Name && s.text == name) return {1, false};
  auto add = [&](const Syntax& part, bool is_guarded) {
    const Occurrences inner = occurrences(part, name);
    out.count += inner.count;
    if (inner.count && !is_guarded && !inner.is_always_guarded) out.is_always_guarded = false;
  };
  const bool guards = (s.kind == Form::Call && s.text == "where") ||
                      (s.kind == Form::Infix && (s.text == "and" || s.text == "or"));
  const bool is_bounded = s.kind == Form::Reduce &&
                          std::any_of(s.axes.begin(), s.axes.end(), [](const expr::SyntaxAxis& a) {
                            return a.extent && (a.relation != "<" || a.name == "..");
                          });
  for (size_t k = 0; k < s.args.size(); ++k) add(*s.args[k], is_bounded || (guards && k > 0));
  if (s.kind == Form::Repeat) {  // what a step uses is used in each round
    for (size_t k = s.axes.size() - 1; k + 1 < s.args.size(); ++k) add(*s.args[k], false);
  }
  for (const expr::SyntaxAxis& a : s.axes) {
    if (a.extent) add(*a.extent, false);
  }
  if (s.init) add(*s.init, false);
  return out;
}

}  // namespace nautilus::spec
