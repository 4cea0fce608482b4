// SPDX-License-Identifier: Apache-2.0
// Random expressions of the integers a, b, the float x and the condition c, for tests of code that
// evaluates or prints expressions of a plan.
#pragma once

#include "base/random.h"
#include "expr/expr.h"

namespace nautilus::plan {

class RandomExpressions {
 public:
  using DType = expr::DType;
  using Expr = expr::Expr;
  using Op = expr::Op;

  RandomExpressions(expr::ExprPool& pool, uint64_t seed) : pool_(pool), random_(seed) {}

  Expr integer(int depth) {
    if (depth == 0) {
      return random_.chance(0.3) ? pool_.integer(random_.integer(-9, 9))
                                 : pool_.index(random_.chance(0.5) ? "a" : "b");
    }
    constexpr Op kOps[] = {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::Mod, Op::Min, Op::Max};
    switch (random_.integer(0, 9)) {
      case 0:
        return pool_.select(condition(depth - 1), integer(depth - 1), integer(depth - 1));
      case 1:
        return pool_.unary(random_.chance(0.5) ? Op::Neg : Op::Abs, integer(depth - 1));
      case 2:
        return pool_.cast(DType::I64, pool_.cast(DType::I32, integer(depth - 1)));
      case 3:
        return pool_.cast(DType::I64, pool_.cast(DType::U8, real(depth - 1)));
      default:
        return pool_.binary(kOps[random_.integer(0, 6)], integer(depth - 1), integer(depth - 1));
    }
  }

  Expr real(int depth) {
    if (depth == 0) {
      return random_.chance(0.5)
                 ? pool_.var(pool_.name("x"), DType::F32)
                 : pool_.floating(0.25 * static_cast<double>(random_.integer(-8, 8)));
    }
    constexpr Op kOps[] = {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max};
    if (random_.chance(0.2)) return pool_.unary(Op::Exp2, real(depth - 1));
    if (random_.chance(0.2)) return pool_.cast(DType::F32, integer(depth - 1));
    if (random_.chance(0.2)) {
      constexpr DType kNarrow[] = {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};
      return pool_.cast(DType::F32, pool_.cast(kNarrow[random_.integer(0, 3)], real(depth - 1)));
    }
    return pool_.binary(kOps[random_.integer(0, 5)], real(depth - 1), real(depth - 1));
  }

  Expr condition(int depth) {
    if (depth == 0) return pool_.var(pool_.name("c"), DType::Bool);
    if (random_.chance(0.3))
      return pool_.binary(random_.chance(0.5) ? Op::And : Op::Or, condition(depth - 1),
                          condition(depth - 1));
    return random_.chance(0.5) ? pool_.binary(Op::Lt, integer(depth - 1), integer(depth - 1))
                               : pool_.binary(Op::Ge, real(depth - 1), real(depth - 1));
  }

 private:
  expr::ExprPool& pool_;
  base::Random random_;
};

}  // namespace nautilus::plan
