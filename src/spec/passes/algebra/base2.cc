// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/base2.h"

#include <numbers>

#include "algebra/sign.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class ExponentScaler {
 public:
  ExponentScaler(expr::ExprPool& pool, std::unordered_set<Expr> axes)
      : pool_(pool), axes_(std::move(axes)) {}

  // e * log2(e), with the constant moved into the terms of a sum and into their scalar factors.
  Expr scaled(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    const Expr result = scale(e);
    memo_.emplace(e, result);
    return result;
  }

 private:
  Expr scale(Expr e) {
    switch (e.op()) {
      case Op::FloatConst:
        return pool_.constant(e.number() * std::numbers::log2e, e.dtype());
      case Op::Add:
      case Op::Sub:
        return pool_.binary(e.op(), scaled(e[0]), scaled(e[1]));
      case Op::Neg:
        return pool_.unary(Op::Neg, scaled(e[0]));
      case Op::Mul:
        for (const size_t k : {size_t{1}, size_t{0}}) {
          if (algebra::is_scalar(e[k], axes_)) return pool_.binary(Op::Mul, e[1 - k], scaled(e[k]));
        }
        break;
      default:
        break;
    }
    return pool_.binary(Op::Mul, e, pool_.constant(std::numbers::log2e, e.dtype()));
  }

  expr::ExprPool& pool_;
  std::unordered_set<Expr> axes_;
  std::unordered_map<Expr, Expr> memo_;
};

}  // namespace

std::optional<ir::Program> base2(const ir::Program& program, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  return map_equations(program, [&](const Let& let) {
    ExponentScaler scaler(pool, all_axes(let, pool));
    return map_body(let, pool, [&](Expr e) {
      return e.op() == Op::Exp ? pool.unary(Op::Exp2, scaler.scaled(e[0])) : e;
    });
  });
}

}  // namespace nautilus::spec
