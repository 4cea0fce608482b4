// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/gather_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class Gathering {
 public:
  Gathering(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), names_(program, pool) {}

  Let equation(Let let, std::vector<Let>& copies) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2)
      return let;
    expr::Substitution copied;
    for (Expr f : factors(r.body())) {
      const Expr e = f.op() == Op::Cast ? f[0] : f;
      if (e.op() != Op::Read || !is_half(e.dtype()) || !is_found(e)) continue;
      ir::Axes axes;
      for (const ir::Axis& a : let.axes) add(a, e, axes);
      const bool is_reused = axes.size() < let.axes.size();
      for (size_t k = 0; k < r.axis_count(); ++k) add({r.axis(k).name(), r.extent(k)}, e, axes);
      if (is_reused && axes.size() >= 2) copied.emplace(e, copy(e, std::move(axes), copies));
    }
    let.body = expr::substitute(pool_, r, copied);
    return let;
  }

 private:
  // An index that is data.
  static bool is_found(Expr read) {
    return std::any_of(read.args().begin(), read.args().end(),
                       [](Expr index) { return !expr::tensors_read(index).empty(); });
  }

  void add(const ir::Axis& axis, Expr e, ir::Axes& axes) {
    if (expr::depends_on(e, pool_.index(axis.name))) axes.push_back(axis);
  }

  Expr copy(Expr read, ir::Axes axes, std::vector<Let>& copies) {
    const ir::Name name = names_.fresh(fmt::format("{}.gathered", read.name().str()));
    copies.push_back({name, std::move(axes), read.dtype(), read});
    return element(copies.back(), pool_);
  }

  expr::ExprPool& pool_;
  TensorNames names_;
};

}  // namespace

std::optional<ir::Program> gather_operands(const ir::Program& program, ir::PassContext& context) {
  Gathering gathering(program, context.pool);
  return map_equations(program, [&](const Let& let, std::vector<Let>& copies) {
    return gathering.equation(let, copies);
  });
}

}  // namespace nautilus::spec
