// SPDX-License-Identifier: Apache-2.0
#include "plan/code.h"

#include <gtest/gtest.h>

#include "expr/print.h"
#include "ir/environment.h"
#include "plan/code_test_util.h"

namespace nautilus::plan {
namespace {

using expr::Expr;

TEST(PlanCode, EqualsTheEvaluator) {
  expr::ExprPool pool;
  RandomExpressions generator(pool, 7);
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
  RandomExpressions generator(pool, 9);
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
