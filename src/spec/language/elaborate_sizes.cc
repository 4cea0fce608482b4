// SPDX-License-Identifier: Apache-2.0
// Names for derived sizes, `size HO = (H - R) / S + 1`: the name stands for the expression wherever
// a size is allowed. The text may have them in any order, and they may be made of integer scalars.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "expr/print.h"
#include "spec/language/elaborator.h"

namespace nautilus::spec {

using diag::Code;
using expr::Syntax;
using ir::Expr;

namespace {

// An element of a tensor in an expression; null if there is none.
const Syntax* element_in(const Syntax& s) {
  if (s.kind == Syntax::Kind::Index) return &s;
  for (const Syntax* a : s.args) {
    if (const Syntax* found = element_in(*a)) return found;
  }
  return nullptr;
}

void names_of(const Syntax& s, std::set<std::string_view>& out) {
  if (s.kind == Syntax::Kind::Name) out.insert(s.text);
  for (const Syntax* a : s.args) names_of(*a, out);
}

}  // namespace

void Elaborator::define_sizes(bool is_last) {
  std::set<std::string_view> later;
  if (!is_last) {
    for (const ScalarSyntax& s : math_.scalars) {
      if (!symbols_.find(s.name.text)) later.insert(s.name.text);
    }
  }
  for (bool has_new = true; has_new;) {
    has_new = false;
    for (size_t k = 0; k < open_sizes_.size(); ++k) {
      const StaticSyntax& size = *open_sizes_[k];
      std::set<std::string_view> names;
      names_of(*size.value, names);
      const bool waits =
          std::any_of(names.begin(), names.end(), [&](auto n) { return later.contains(n); }) ||
          std::any_of(open_sizes_.begin(), open_sizes_.end(),
                      [&](const StaticSyntax* s) { return names.contains(s->name.text); });
      if (waits) continue;
      const Syntax* element = element_in(*size.value);
      if (element) {
        sink_
            .report(Code::BadStatement, element->span,
                    "a size must be an expression of sizes and scalars")
            .label("an element of a tensor");
      }
      const Expr value = element ? Expr() : closed_size(*size.value);
      // A name with a reported value stays known, so that its uses are not reported as well.
      symbols_.add(
          size.name,
          {Symbol::Kind::Size, {}, value ? value : pool_.integer(1), {}, {}, true, nullptr}, sink_);
      open_sizes_.erase(open_sizes_.begin() + static_cast<long>(k));
      has_new = true;
      break;
    }
  }
  if (!is_last || open_sizes_.empty()) return;
  report_size_cycle(open_sizes_);
  for (const StaticSyntax* s : open_sizes_) {
    symbols_.add(s->name, {Symbol::Kind::Size, {}, pool_.integer(1), {}, {}, true, nullptr}, sink_);
  }
}

void Elaborator::report_size_cycle(const std::vector<const StaticSyntax*>& left) {
  // Each of them needs one of the others: following any, one comes back.
  std::vector<const StaticSyntax*> path = {left[0]};
  while (true) {
    std::set<std::string_view> names;
    names_of(*path.back()->value, names);
    const auto next = std::find_if(left.begin(), left.end(), [&](const StaticSyntax* s) {
      return names.contains(s->name.text);
    });
    const auto first = std::find(path.begin(), path.end(), *next);
    if (first == path.end()) {
      path.push_back(*next);
      continue;
    }
    const StaticSyntax& again = **first;
    if (path.end() - first == 1) {
      sink_.report(Code::Cycle, again.name.span,
                   fmt::format("the size `{}` is defined by itself", again.name.text));
      return;
    }
    std::string chain;
    for (auto s = first; s != path.end(); ++s) chain += fmt::format("`{}` needs ", (*s)->name.text);
    auto& d = sink_.report(Code::Cycle, again.name.span,
                           fmt::format("sizes need each other: {}`{}`", chain, again.name.text));
    for (auto s = first + 1; s != path.end(); ++s) d.also((*s)->name.span, "");
    return;
  }
}

void Elaborator::check_sizes() {
  if (sink_.has_errors()) return;
  const expr::Facts known = ir::facts_of(program_, pool_);
  for (const StaticSyntax& s : math_.sizes) {
    const Expr value = symbols_.find(s.name.text)->value;
    const Expr condition = pool_.binary(expr::Op::Ge, value, pool_.integer(0));
    switch (known.prove(condition)) {
      case expr::Truth::True:
        break;
      case expr::Truth::False:
        sink_
            .report(Code::BadStatement, s.value->span,
                    fmt::format("the size `{}` is negative", s.name.text))
            .label(fmt::format("this is {}", expr::to_string(value)))
            .with_help("a size counts elements: it is 0 or more");
        break;
      case expr::Truth::Unknown:
        program_.body.push_back(ir::make(Fact{condition}, s.value->span));
        break;
    }
  }
}

}  // namespace nautilus::spec
