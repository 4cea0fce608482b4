// SPDX-License-Identifier: Apache-2.0
// `[a, b, c][i]`: an element of a table that has no name; a part of elaborate_expr.h. Tables with a
// name are read in table_syntax.cc.
#include <fmt/format.h>

#include "expr/rules/rules.h"
#include "expr/walk.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::Op;
using expr::Syntax;
using ir::Expr;

namespace {

constexpr size_t kMaxTableElements = 256;

// Halves of what is left: as many choices as the number of elements has digits.
Expr chosen(expr::ExprPool& pool, Expr at, const std::vector<Typed>& elements, size_t low,
            size_t high) {
  if (high - low == 1) return elements[low].e;
  const size_t middle = (low + high) / 2;
  const Expr is_low = pool.binary(Op::Lt, at, pool.integer(static_cast<int64_t>(middle)));
  return pool.select(is_low, chosen(pool, at, elements, low, middle),
                     chosen(pool, at, elements, middle, high));
}

}  // namespace

// In one dtype; empty if something was reported.
std::vector<Typed> ExprElaborator::table_elements(const Syntax& s) {
  const size_t count = s.args.size() - 1;
  if (count > kMaxTableElements) {
    scope_.sink
        .report(Code::TooLong, s.span,
                fmt::format("a table of {} elements; the limit is {}", count, kMaxTableElements))
        .with_help("hand it over as an input");
    return {};
  }
  std::vector<Typed> elements;
  Typed all;
  for (size_t k = 0; k < count; ++k) {
    const Typed e = elaborate(*s.args[k]);
    if (!e) return {};
    if (scope_.axes.has_axis(e.e) || expr::has_reduce(e.e) || !expr::tensors_read(e.e).empty()) {
      scope_.sink
          .report(Code::BadStatement, s.args[k]->span,
                  "an element of a table must be an expression of numbers, sizes and scalars")
          .label(scope_.axes.has_axis(e.e) ? "depends on an axis"
                                           : "depends on the elements of a tensor")
          .with_help("choose between values that vary with `where(i == 0, ..., ...)`");
      return {};
    }
    Typed both = e;
    if (all && !promote(scope_.pool, all, both)) {
      scope_.sink.report(Code::DTypeMismatch, s.args[k]->span,
                         fmt::format("this element of the table is {}, those before it {}",
                                     expr::name(e.e.dtype()), expr::name(all.e.dtype())));
      return {};
    }
    if (!all) all = both;
    elements.push_back(e);
  }
  for (Typed& e : elements) {
    Typed goal = all;
    if (e.e.dtype() != all.e.dtype() && promote(scope_.pool, goal, e)) e.hold = all.hold;
  }
  return elements;
}

Typed ExprElaborator::table(const Syntax& s) {
  const std::vector<Typed> elements = table_elements(s);
  if (elements.empty()) return fail();
  const Syntax& written = *s.args.back();
  const Expr at = elaborate_index(written, "an index");
  if (!at) return fail();
  const Expr number = expr::fold(scope_.pool, at);
  const Expr known = number ? number : at;
  const auto count = static_cast<int64_t>(elements.size());
  if (known.op() == Op::IntConst && known.integer() >= 0 && known.integer() < count)
    return elements[static_cast<size_t>(known.integer())];
  const Expr extent = scope_.pool.integer(count);
  if (scope_.axes.is_axis(at))
    scope_.axes.use(at, extent, written.span, fmt::format("the table has {} elements", count));
  const Expr axis = scope_.axes.add_root("at", s.span, extent);
  const Expr body = chosen(scope_.pool, axis, elements, 0, elements.size());
  const ir::Name name = taken_out_.define("table", {{axis.name(), extent}}, body);
  const Expr read = scope_.pool.read(name, body.dtype(), std::vector<Expr>{at});
  scope_.reads.add(read, s.span);
  return {read};
}

}  // namespace nautilus::spec
