// SPDX-License-Identifier: Apache-2.0
#include "plan/code.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "expr/print.h"
#include "ir/environment.h"

namespace nautilus::plan {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

// Random expressions of the integers a, b, the float x and the condition c.
class Generator {
 public:
  Generator(expr::ExprPool& pool, uint64_t seed) : pool_(pool), random_(seed) {}

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

TEST(PlanCode, EqualsTheEvaluator) {
  expr::ExprPool pool;
  Generator generator(pool, 7);
  base::Random random(8);
  const Slots slots = {{"a", 0}, {"b", 1}, {"x", 2}, {"c", 3}};
  for (int n = 0; n < 3000; ++n) {
    ir::Environment env;
    env.sizes = {{"a", random.integer(-20, 20)},
                 {"b", n % 7 == 0 ? INT64_MAX - random.integer(0, 2) : random.integer(-3, 5)}};
    env.scalars = {{"x", expr::float_value(static_cast<float>(random.normal()))},
                   {"c", expr::int_value(n % 2)}};
    const expr::Value values[] = {expr::int_value(env.sizes["a"]), expr::int_value(env.sizes["b"]),
                                  env.scalars["x"], env.scalars["c"]};
    const int depth = static_cast<int>(random.integer(0, 5));
    const Expr e = n % 3 == 0   ? generator.integer(depth)
                   : n % 3 == 1 ? generator.real(depth)
                                : generator.condition(depth);
    const Code code = Code::of(e, slots);
    std::vector<expr::Value> stack(static_cast<size_t>(code.depth()));
    // Bits, so that NaN equals NaN.
    EXPECT_EQ(code.run(values, stack.data()).i, ir::evaluate(e, env).i) << expr::to_string(e);
  }
}

TEST(PlanCode, PolynomialsEqualTheirExpression) {
  expr::ExprPool pool;
  Generator generator(pool, 9);
  base::Random random(10);
  const Slots slots = {{"a", 0}, {"b", 1}, {"x", 2}, {"c", 3}};
  int count = 0;
  for (int n = 0; n < 1000; ++n) {
    const Expr e = generator.integer(static_cast<int>(random.integer(0, 4)));
    const auto poly = expr::Poly::of(e);
    if (!poly) continue;
    ++count;
    const expr::Value values[] = {expr::int_value(random.integer(-20, 20)),
                                  expr::int_value(random.integer(-5, 5)), expr::float_value(0.5),
                                  expr::int_value(n % 2)};
    const Code code = Code::of(*poly, slots);
    const Code direct = Code::of(e, slots);
    std::vector<expr::Value> stack(static_cast<size_t>(std::max(code.depth(), direct.depth())));
    EXPECT_EQ(code.run(values, stack.data()).i, direct.run(values, stack.data()).i)
        << expr::to_string(e);
  }
  EXPECT_GT(count, 500);
}

}  // namespace
}  // namespace nautilus::plan
