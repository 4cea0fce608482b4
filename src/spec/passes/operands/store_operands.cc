// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/passes/operands/store_lines.h"

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
  Storing(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        facts_(ir::facts_of(program, pool_)),
        types_(tensor_types(program)),
        names_(program, pool_),
        lines_(program, context) {}

  std::optional<ir::Program> finish(ir::Program out) { return lines_.finish(std::move(out)); }

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
      // The tensor is also computed if an axis that it lacks is empty.
      if (!are_inside_without_axes(f, types_, own, all, pool_)) continue;
      const Expr exact = exact_value(f);
      const decision::Store store =
          lines_.choose({.tensors = {operand.name},
                         .dtype = operand.dtype,
                         .axes = names_of(operand.axes),
                         .others = exact ? held_dtypes(exact) : std::vector<expr::DType>()});
      if (store.as == decision::StoredAs::Off) {
        if (exact) stored.emplace(f, exact);
        continue;
      }
      operand.axes = in_order(operand.axes, store.axes);
      operand.dtype = dtype_of(store.as);
      operand.body = pool_.cast(operand.dtype, f[0][0]);
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
  // The rounded value if rounding changes no number: only the pass added it. Null if rounding
  // changes numbers.
  static Expr exact_value(Expr f) {
    const Expr x = f[0][0];
    if (x.dtype() != f.dtype()) return {};
    const std::vector<expr::DType> held = held_dtypes(x);
    return std::find(held.begin(), held.end(), f[0].dtype()) == held.end() ? Expr() : x;
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  StoreLines lines_;
};

}  // namespace

std::optional<ir::Program> store_operands(const ir::Program& program, ir::PassContext& context) {
  Storing storing(program, context);
  return storing.finish(map_equations(program, [&](const Let& let, std::vector<Let>& operands) {
    return storing.equation(let, operands);
  }));
}

}  // namespace nautilus::spec
