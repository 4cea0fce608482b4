// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/gather_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class Gathering {
 public:
  Gathering(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), types_(tensor_types(program)) {}

  ir::Program run(const ir::Program& program) {
    ir::Program out{program.level, program.name, {}};
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      if (!let) {
        out.body.push_back(op);
        continue;
      }
      Let copy = *let;
      copy.body = equation(*let, out.body);
      out.body.push_back(ir::make(std::move(copy), op.span()));
    }
    return out;
  }

 private:
  static void factors(Expr e, std::vector<Expr>& out) {
    if (e.op() != Op::Mul) return out.push_back(e);
    factors(e[0], out);
    factors(e[1], out);
  }

  Expr equation(const Let& let, ir::Block& before) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2) return r;
    std::vector<Expr> list;
    factors(r.body(), list);
    expr::Substitution copied;
    for (Expr f : list) {
      const Expr e = f.op() == Op::Cast ? f[0] : f;
      const bool is_half = e.dtype() == expr::DType::BF16 || e.dtype() == expr::DType::F16;
      if (e.op() != Op::Read || !is_half || !is_found(e)) continue;
      ir::Axes axes;
      for (const ir::Axis& a : let.axes) add(a, e, axes);
      const bool is_reused = axes.size() < let.axes.size();
      for (size_t k = 0; k < r.axis_count(); ++k) add({r.axis(k).name(), r.extent(k)}, e, axes);
      if (is_reused && axes.size() >= 2) copied.emplace(e, copy(e, std::move(axes), before));
    }
    return copied.empty() ? r : expr::substitute(pool_, r, copied);
  }

  // An index that is data.
  static bool is_found(Expr read) {
    return std::any_of(read.args().begin(), read.args().end(),
                       [](Expr index) { return !expr::tensors_read(index).empty(); });
  }

  void add(const ir::Axis& axis, Expr e, ir::Axes& axes) {
    if (expr::depends_on(e, pool_.index(axis.name))) axes.push_back(axis);
  }

  Expr copy(Expr read, ir::Axes axes, ir::Block& before) {
    std::vector<Expr> indices;
    for (const ir::Axis& a : axes) indices.push_back(pool_.index(a.name));
    std::string name = fmt::format("{}.gathered", read.name().str());
    while (types_.contains(name)) name += "_";
    Let let{pool_.name(name), std::move(axes), read.dtype(), read};
    types_.emplace(name, let.type());
    const Expr out = pool_.read(let.name, read.dtype(), indices);
    before.push_back(ir::make(std::move(let)));
    return out;
  }

  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
};

}  // namespace

std::optional<ir::Program> gather_operands(const ir::Program& program, ir::PassContext& context) {
  return Gathering(program, context.pool).run(program);
}

}  // namespace nautilus::spec
