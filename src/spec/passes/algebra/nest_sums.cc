// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/nest_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algebra/contraction.h"
#include "expr/walk.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

constexpr size_t kMostFactors = 16;

class Nesting {
 public:
  Nesting(const ir::Program& program, expr::ExprPool& pool)
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
      while (nest(copy, out.body)) {
      }
      out.body.push_back(ir::make(std::move(copy), op.span()));
    }
    return out;
  }

 private:
  // Takes one axis out of the sum, into an equation of its own before.
  bool nest(Let& let, ir::Block& before) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || r.axis_count() < 2 ||
        r.init() || expr::has_reduce(r.body()) || r.body().dtype() != expr::DType::F32)
      return false;
    const std::vector<Expr> list = algebra::factors(r.body());
    if (list.size() < 3 || list.size() > kMostFactors) return false;
    ir::Axes all = let.axes;
    for (size_t k = 0; k < r.axis_count(); ++k) all.push_back({r.axis(k).name(), r.extent(k)});
    const bool is_product = algebra::is_contraction(list, result_axes(let, pool_));
    // The axis with the fewest axes in its factors.
    std::optional<size_t> best;
    size_t best_axes = 0;
    for (size_t k = 0; k < r.axis_count(); ++k) {
      const std::vector<Expr> inner = with(list, r.axis(k), true);
      if (inner.size() == list.size()) continue;
      std::vector<Expr> left;
      for (const ir::Axis& a : all) {
        const Expr axis = pool_.index(a.name);
        if (axis != r.axis(k) && is_used(inner, axis)) left.push_back(axis);
      }
      const bool is_less = left.size() + 1 < all.size() && inner.size() > 1;
      const bool is_gain = is_less || (!is_product && algebra::is_contraction(inner, left));
      if (!is_gain || (best && left.size() >= best_axes)) continue;
      best = k;
      best_axes = left.size();
    }
    if (!best) return false;
    take_out(let, r, *best, list, all, before);
    return true;
  }

  static std::vector<Expr> with(const std::vector<Expr>& list, Expr axis, bool has) {
    std::vector<Expr> out;
    for (Expr f : list) {
      if (expr::depends_on(f, axis) == has) out.push_back(f);
    }
    return out;
  }

  static bool is_used(const std::vector<Expr>& list, Expr axis) {
    return std::any_of(list.begin(), list.end(), [&](Expr f) { return expr::depends_on(f, axis); });
  }

  Expr product(const std::vector<Expr>& list) {
    Expr out;
    for (Expr f : list) out = out ? pool_.binary(Op::Mul, out, f) : f;
    return out;
  }

  void take_out(Let& let, Expr r, size_t k, const std::vector<Expr>& list, const ir::Axes& all,
                ir::Block& before) {
    const std::vector<Expr> inner = with(list, r.axis(k), true);
    ir::Axes axes;
    std::vector<Expr> indices;
    for (const ir::Axis& a : all) {
      const Expr axis = pool_.index(a.name);
      if (axis == r.axis(k) || !is_used(inner, axis)) continue;
      axes.push_back(a);
      indices.push_back(axis);
    }
    std::string name = fmt::format("{}.inner", let.name.str());
    while (types_.contains(name)) name += "_";
    const Expr axis[] = {r.axis(k)};
    const Expr extent[] = {r.extent(k)};
    Let sum{pool_.name(name), std::move(axes), expr::DType::F32,
            pool_.reduce(expr::Reducer::Sum, product(inner), axis, extent)};
    types_.emplace(name, sum.type());
    std::vector<Expr> rest = {pool_.read(sum.name, expr::DType::F32, indices)};
    for (Expr f : with(list, r.axis(k), false)) rest.push_back(f);
    before.push_back(ir::make(std::move(sum)));
    std::vector<Expr> outer;
    std::vector<Expr> extents;
    for (size_t n = 0; n < r.axis_count(); ++n) {
      if (n == k) continue;
      outer.push_back(r.axis(n));
      extents.push_back(r.extent(n));
    }
    let.body = pool_.reduce(expr::Reducer::Sum, product(rest), outer, extents);
  }

  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
};

}  // namespace

std::optional<ir::Program> nest_sums(const ir::Program& program, ir::PassContext& context) {
  return Nesting(program, context.pool).run(program);
}

}  // namespace nautilus::spec
