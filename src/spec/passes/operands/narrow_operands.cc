// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/narrow_operands.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "expr/walk.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// An element of 16 bits, or a number that is rounded to them: nothing to say about it. Passes of
// their own widen elements of 8-bit floats, and copy elements that a condition guards.
bool is_narrow(Expr f) {
  if (f.op() == EK::Select && f[2].op() == EK::FloatConst && f[2].number() == 0)
    return algebra::is_half_element(f[1]);
  if (f.op() != EK::Cast) return false;
  const Expr x = f[0];
  return expr::is_half(x.dtype()) ||
         (x.op() == EK::Read && expr::is_float(x.dtype()) && expr::bytes(x.dtype()) == 1);
}

Let narrow(const Let& let, expr::ExprPool& pool) {
  const Expr r = let.body;
  if (r.op() != EK::Reduce || r.reducer() != expr::Reducer::Sum || r.dtype() != DType::F32)
    return let;
  const std::vector<Expr> list = algebra::factors(r.body());
  const std::vector<Expr> axes = result_axes(let, pool);
  // Factors along the sum; those without its axes leave it.
  std::vector<Expr> summed;
  bool is_licensed = false;
  bool are_all_held = true;
  DType preferred = DType::BF16;
  for (Expr f : list) {
    bool is_summed = false;
    for (size_t k = 0; k < r.axis_count(); ++k) is_summed |= expr::depends_on(f, r.axis(k));
    if (!is_summed) continue;
    summed.push_back(f);
    const algebra::ExactHalves held = algebra::exact_halves(f);
    is_licensed |= held.any() && held.is_stored_float;
    are_all_held &= held.any();
    if (held.in_f16 && !held.in_bf16) preferred = DType::F16;
  }
  expr::Substitution changed;
  for (Expr f : summed) {
    const algebra::ExactHalves held = algebra::exact_halves(f);
    const bool is_operand = std::any_of(summed.begin(), summed.end(), [&](Expr other) {
      return algebra::are_operands(f, other, axes);
    });
    if (is_narrow(f) || !held.any() || !held.has_element || !is_operand ||
        !(is_licensed || are_all_held))
      continue;
    changed.emplace(f, pool.cast(DType::F32, pool.cast(held.choose(preferred), f)));
  }
  if (changed.empty()) return let;
  Let out = let;
  out.body = expr::substitute(pool, r, changed);
  return out;
}

}  // namespace

std::optional<ir::Program> narrow_operands(const ir::Program& program, ir::PassContext& context) {
  return map_equations(program, [&](const Let& let) { return narrow(let, context.pool); });
}

}  // namespace nautilus::spec
