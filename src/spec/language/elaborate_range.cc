// SPDX-License-Identifier: Apache-2.0
// The axes of a reduction: what they run over and what bounds them; a part of elaborate_reduce.h.
//
//   sum[k < 3]     an extent: it contains no axis
//   sum[s <= t]    a bound: the extent of s is inferred, from t if nothing else has it
//   sum[.. <= t]   a copy of t under that bound, which stands for t in the body
#include <fmt/format.h>

#include "expr/bounds/affine.h"
#include "expr/build.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::Op;
using expr::Syntax;
using ir::Expr;

bool ReductionElaborator::ranges(const Syntax& s, std::vector<Range>& out) {
  for (const expr::SyntaxAxis& a : s.axes) {
    if (a.name == "..") {
      if (!copied_range(a, out)) return false;
      continue;
    }
    Expr end;
    if (a.extent) {
      end = parts_.elaborate_index(*a.extent, a.relation == "<" ? "a size" : "a bound");
      if (!end) return false;
    }
    if (!end || (a.relation == "<" && !scope_.axes.has_axis(end))) {
      if (end && !parts_.is_size(*a.extent, end)) return false;
      if (!bind_range(a, end ? expr::canonical_index(scope_.pool, end) : end, out)) return false;
      continue;
    }
    if (!scope_.axes.has_axis(end)) {
      scope_.sink
          .report(Code::BadStatement, a.extent->span,
                  fmt::format("the bound of `{}` depends on no axis", a.name))
          .with_help(fmt::format("an extent is written `{} < ...`", a.name));
      return false;
    }
    if (!bind_range(a, {}, out)) return false;
    Range& range = out.back();
    range.relation = *expr::infix_op(a.relation, end.dtype());
    range.bound = end;
    if (scope_.axes.is_axis(end)) scope_.axes.link(range.axis, end);
  }
  return true;
}

bool ReductionElaborator::copied_range(const expr::SyntaxAxis& a, std::vector<Range>& out) {
  const std::vector<Expr> axes = a.extent->kind == Syntax::Kind::Name
                                     ? scope_.names.find_axes(a.extent->text)
                                     : std::vector<Expr>();
  if (axes.size() == 1) {
    const Expr axis = axes[0];
    out.push_back(
        {axis, scope_.axes.fresh(axis), &a, *expr::infix_op(a.relation, axis.dtype()), axis});
    return true;
  }
  auto& d =
      scope_.sink.report(Code::WrongArguments, a.extent->span,
                         axes.empty() ? "`..` is a copy of the axis that bounds it"
                                      : "`..` is a copy of one axis, this stands for several");
  if (axes.empty())
    d.label("not an axis in scope").with_help("write the name of an axis, `.. <= t`");
  return false;
}

// A new axis, or the axes that an axis of a function stands for.
bool ReductionElaborator::bind_range(const expr::SyntaxAxis& a, Expr extent,
                                     std::vector<Range>& out) {
  const Expr outer = scope_.names.find_axis(a.name);
  if (scope_.names.is_function_axis(a.name) && outer && !a.extent) {
    for (Expr axis : scope_.names.find_axes(a.name))
      out.push_back({axis, scope_.axes.fresh(axis), &a});
    return true;
  }
  if (outer || scope_.symbols.find(a.name)) {
    const Symbol* symbol = scope_.symbols.find(a.name);
    auto& d = scope_.sink.report(Code::AxisConflict, a.span,
                                 fmt::format("`{}` is taken already", a.name));
    d.label(outer ? "an axis of this name is in scope"
                  : fmt::format("the name of {}", describe(symbol->kind)));
    d.with_help(a.extent && a.relation != "<"
                    ? fmt::format("give the reduction an axis name of its own, or write `.. {} {}`",
                                  a.relation, a.name)
                    : "give the reduction an axis name of its own");
    return false;
  }
  const Expr var = scope_.axes.add_root(a.name, a.span, extent);
  out.push_back({var, {}, &a});
  scope_.names.bind_axis(a.name, var);
  return true;
}

}  // namespace nautilus::spec
