// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// f32(bf16(x))
bool is_rounded(Expr f) {
  return f.op() == Op::Cast && f[0].op() == Op::Cast && expr::is_half(f[0].dtype()) &&
         f.dtype() == expr::DType::F32;
}

class Storing {
 public:
  Storing(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        facts_(ir::facts_of(program, pool)),
        types_(tensor_types(program)),
        names_(program, pool) {}

  Let equation(const Let& let, std::vector<Let>& operands) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || r.dtype() != expr::DType::F32)
      return let;
    const std::vector<Expr> list = algebra::factors(r.body());
    const std::vector<Expr> results = result_axes(let, pool_);
    ir::Axes axes = let.axes;
    for (size_t k = 0; k < r.axis_count(); ++k) axes.push_back({r.axis(k).name(), r.extent(k)});
    expr::Facts all = facts_;
    for (const ir::Axis& a : axes) all.add_axis(pool_.index(a.name), a.extent);
    expr::Substitution stored;
    for (Expr f : list) {
      const bool is_operand =
          is_rounded(f) && std::any_of(list.begin(), list.end(), [&](Expr other) {
            return algebra::are_operands(f, other, results);
          });
      if (!is_operand || stored.contains(f)) continue;
      Let operand{names_.fresh(fmt::format("{}.operand", let.name.str())), {}, f[0].dtype(), f[0]};
      expr::Facts own = facts_;
      for (const ir::Axis& a : axes) {
        if (!expr::depends_on(f, pool_.index(a.name))) continue;
        operand.axes.push_back(a);
        own.add_axis(pool_.index(a.name), a.extent);
      }
      operand.axes = in_order_of_memory(f, std::move(operand.axes), pool_);
      // The tensor is computed also where an axis that it has not is empty.
      if (!are_inside_without_axes(f, types_, own, all, pool_)) continue;
      types_.emplace(std::string(operand.name.str()), operand.type());
      stored.emplace(f, pool_.cast(f.dtype(), element(operand, pool_)));
      operands.push_back(std::move(operand));
    }
    if (stored.empty()) return let;
    Let out = let;
    out.body = expr::substitute(pool_, r, stored);
    return out;
  }

 private:
  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
};

}  // namespace

std::optional<ir::Program> store_operands(const ir::Program& program, ir::PassContext& context) {
  Storing storing(program, context.pool);
  return map_equations(program, [&](const Let& let, std::vector<Let>& operands) {
    return storing.equation(let, operands);
  });
}

}  // namespace nautilus::spec
