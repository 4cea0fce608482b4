// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/merged_limbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/conjuncts.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

bool has_axis(const ir::Axes& axes, Expr variable) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const ir::Axis& a) { return a.name == variable.name(); });
}

bool is_merged(Expr e, const MergedDepth& merged) {
  return std::any_of(merged.merged.begin(), merged.merged.end(),
                     [&](Expr axis) { return expr::depends_on(e, axis); });
}

// Divides a guard into the part that limbs have and the part that stays with the product.
struct GuardParts {
  Expr inside;
  Expr outside;
};
std::optional<GuardParts> divide(Expr condition, const MergedDepth& merged, const ir::Axes& along,
                                 const ir::Axes& axes, expr::ExprPool& pool) {
  GuardParts out;
  for (Expr c : expr::conjuncts(condition)) {
    bool is_along = is_merged(c, merged);
    for (Expr v : expr::free_vars(c)) {
      const bool is_own = has_axis(along, v);
      // A test of both would need an axis that the tensor lacks.
      if (has_axis(axes, v) && !is_own && !is_merged(v, merged) && is_along) return std::nullopt;
      is_along |= is_own;
    }
    Expr& all = is_along ? out.inside : out.outside;
    const Expr test = is_along ? expr::substitute(pool, c, merged.at) : c;
    all = all ? pool.binary(Op::And, all, test) : test;
  }
  return out;
}

}  // namespace

std::optional<MergedLimbs> merged_limbs(Expr operand, const MergedDepth& merged,
                                        const ir::Axes& axes, const ir::TensorType& type,
                                        expr::ExprPool& pool) {
  const bool is_guarded = operand.op() == Op::Select;
  const Expr read = is_guarded ? operand[1] : operand;
  MergedLimbs out;
  ir::Axes along;  // of the equation, in indices that are written out
  std::vector<Expr> from;
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (!is_merged(read[k], merged)) {
      const Expr place = pool.index(fmt::format("x{}", k));
      out.limbs.parts.push_back({{place.name(), type.dims[k]}, read[k]});
      from.push_back(place);
      continue;
    }
    from.push_back(expr::substitute(pool, read[k], merged.at));
    for (const ir::Axis& a : axes) {
      const Expr axis = pool.index(a.name);
      if (!has_axis(along, axis) && !is_merged(axis, merged) && expr::depends_on(read[k], axis))
        along.push_back(a);
    }
  }
  out.limbs.value = pool.read(read.name(), read.dtype(), from);
  if (is_guarded) {
    const auto guard = divide(operand[0], merged, along, axes, pool);
    if (!guard) return std::nullopt;
    out.outside = guard->outside;
    if (guard->inside) out.limbs.value = pool.select(guard->inside, out.limbs.value, operand[2]);
  }
  out.kept = out.limbs.parts.size();
  along.push_back(merged.axis);
  for (const ir::Axis& a : along) out.limbs.parts.push_back({a, pool.index(a.name)});
  return out;
}

}  // namespace nautilus::spec
