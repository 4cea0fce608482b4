// SPDX-License-Identifier: Apache-2.0
#include "choose/points/value_costs.h"

#include <unordered_set>

#include "expr/bounds/affine.h"
#include "expr/walk.h"

namespace nautilus::choose {

using expr::Expr;
using EK = expr::Op;

namespace {

// Of one node; functions and divisions are several instructions.
double node_operations(Expr e, const target::NestCosts& costs) {
  const bool is_function = (e.op() >= EK::Exp && e.op() <= EK::Cos) || e.op() == EK::Div;
  return is_function ? costs.function_operations : 1;
}

}  // namespace

double operations_of(Expr value, const target::NestCosts& costs) {
  double n = 0;
  expr::for_each(value, [&](Expr e) {
    const bool is_leaf = e.op() == EK::IntConst || e.op() == EK::FloatConst ||
                         e.op() == EK::BoolConst || e.op() == EK::Var;
    n += is_leaf ? 0 : node_operations(e, costs);
  });
  return n;
}

double operations_along_row(Expr value, const target::NestCosts& costs) {
  double n = 0;
  std::unordered_set<Expr> seen;
  const auto go = [&](const auto& self, Expr e) -> void {
    if (!seen.insert(e).second || e.args().empty()) return;
    n += node_operations(e, costs);
    if (e.op() == EK::Read) return;
    for (Expr a : e.args()) self(self, a);
  };
  go(go, value);
  return n;
}

Stride stride(Expr read, Expr axis) {
  Stride out = Stride::None;
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (!expr::depends_on(read[k], axis)) continue;
    if (k + 1 < read.args().size()) return Stride::Far;
    // Neighbours read the same element, or the next one.
    const bool is_quotient = read[k].op() == EK::FloorDiv && read[k][1].op() == EK::IntConst;
    const auto p = expr::Poly::of(is_quotient ? read[k][0] : read[k]);
    const auto parts = p ? p->split(axis) : std::nullopt;
    out = parts && parts->first.constant() == 1 ? Stride::One : Stride::Far;
  }
  return out;
}

}  // namespace nautilus::choose
