// SPDX-License-Identifier: Apache-2.0
//
// Simplification keeps the value of random expressions at random points, never makes an expression
// larger, and has nothing left to do the second time; with and without knowledge of the variables.
#include "expr/rules/simplify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expr/expr_test_util.h"
#include "expr/walk.h"

namespace nautilus::expr {
namespace {

class ExpressionGenerator {
 public:
  ExpressionGenerator(ExprPool& pool, Random& random) : pool_(pool), random_(random) {}

  Expr number(DType dtype, int depth) {
    if (depth == 0 || random_.chance(10)) return leaf(dtype);
    if (is_float(dtype)) return floating(dtype, depth);
    static const std::vector<Op> ops = {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv,
                                        Op::Mod, Op::Min, Op::Max};
    switch (random_.in(0, 9)) {
      case 0:
        return pool_.unary(Op::Neg, number(dtype, depth - 1));
      case 1:
        return pool_.select(truth(dtype, depth - 1), number(dtype, depth - 1),
                            number(dtype, depth - 1));
      case 2:
      case 3:  // shapes that index rules look for
        return pool_.binary(random_.chance(50) ? Op::FloorDiv : Op::Mod, scaled_sum(dtype, depth),
                            pool_.integer(random_.in(1, 8), dtype));
      case 4:
        return split(dtype, depth);
      default:
        return pool_.binary(random_.of(ops), number(dtype, depth - 1), number(dtype, depth - 1));
    }
  }

  Expr truth(DType operand, int depth) {
    static const std::vector<Op> ops = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
    if (depth == 0) return random_.chance(30) ? pool_.boolean(random_.chance(50)) : flag();
    switch (random_.in(0, 5)) {
      case 0:
        return pool_.unary(Op::Not, truth(operand, depth - 1));
      case 1:
        return pool_.binary(Op::And, truth(operand, depth - 1), truth(operand, depth - 1));
      case 2:
        return pool_.binary(Op::Or, truth(operand, depth - 1), truth(operand, depth - 1));
      default:
        return pool_.binary(random_.of(ops), number(operand, depth - 1),
                            number(operand, depth - 1));
    }
  }

 private:
  Expr flag() { return pool_.var(pool_.name("p"), DType::Bool); }

  Expr leaf(DType dtype) {
    static const std::vector<std::string> names = {"i", "j", "N", "s"};
    static const std::vector<double> numbers = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e30, 1e-40};
    if (random_.chance(60)) return pool_.var(pool_.name(random_.of(names)), dtype);
    return is_float(dtype) ? pool_.floating(random_.of(numbers), dtype)
                           : pool_.integer(random_.in(-9, 9), dtype);
  }

  Expr scaled_sum(DType dtype, int depth) {
    const Expr scaled =
        pool_.binary(Op::Mul, number(dtype, depth - 1), pool_.integer(random_.in(1, 4) * 4, dtype));
    const Expr rest = number(dtype, depth - 1);
    return random_.chance(50) ? pool_.binary(Op::Add, scaled, rest)
                              : pool_.binary(Op::Add, rest, scaled);
  }

  Expr split(DType dtype, int depth) {
    const Expr x = number(dtype, depth - 1);
    const Expr c = pool_.integer(random_.in(-2, 8), dtype);
    const Expr whole = pool_.binary(Op::Mul, pool_.binary(Op::FloorDiv, x, c), c);
    return pool_.binary(Op::Add, whole, pool_.binary(Op::Mod, x, c));
  }

  Expr floating(DType dtype, int depth) {
    static const std::vector<Op> unary = {Op::Neg, Op::Neg, Op::Abs, Op::Floor, Op::Round, Op::Exp};
    static const std::vector<Op> binary = {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max};
    switch (random_.in(0, 4)) {
      case 0:
      case 1:
        return pool_.unary(random_.of(unary), number(dtype, depth - 1));
      case 2:
        return pool_.select(truth(dtype, depth - 1), number(dtype, depth - 1),
                            number(dtype, depth - 1));
      default:
        return pool_.binary(random_.of(binary), number(dtype, depth - 1), number(dtype, depth - 1));
    }
  }

  ExprPool& pool_;
  Random& random_;
};

Value random_value(DType dtype, Random& random) {
  static const std::vector<double> special = {0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, NAN, 0.5};
  switch (dtype) {
    case DType::Bool:
      return int_value(random.in(0, 1));
    case DType::I64:
      return int_value(random.in(-20, 20));
    case DType::I32:  // all of them: i32 wraps
      if (random.chance(30)) return int_value(wrap_to(dtype, INT32_MAX + random.in(-3, 3)));
      return int_value(wrap_to(dtype, random.any_size()));
    default:
      return float_value(random.chance(40) ? random.of(special) : random.unit() * 20 - 10);
  }
}

void expect_same_value(Expr e, Expr simple, const Point& point) {
  if (!try_value_at(e, point, Arithmetic::WithoutOverflow)) return;
  ASSERT_TRUE(same_value(e.dtype(), value_at(e, point), value_at(simple, point)))
      << to_string(e) << "\n"
      << to_string(simple) << "\nat " << show(point);
}

TEST(Simplify, KeepsTheValueOfRandomExpressions) {
  Random random(1);
  ExprPool pool;
  Simplifier simplifier(pool);
  ExpressionGenerator generator(pool, random);
  for (int trial = 0; trial < 10000; ++trial) {
    static const std::vector<DType> dtypes = {DType::I64, DType::I64, DType::I32, DType::F32,
                                              DType::F64};
    const DType dtype = random.of(dtypes);
    const int depth = static_cast<int>(random.in(1, 4));
    const Expr e =
        random.chance(30) ? generator.truth(dtype, depth) : generator.number(dtype, depth);
    const Expr simple = simplifier.simplify(e);
    ASSERT_EQ(simple.dtype(), e.dtype());
    ASSERT_LE(simple.tree_size(), e.tree_size()) << to_string(e) << "\n" << to_string(simple);
    ASSERT_EQ(simplifier.simplify(simple), simple) << to_string(e) << "\n"
                                                   << to_string(simple) << "\n"
                                                   << to_string(simplifier.simplify(simple));
    for (int k = 0; k < 20; ++k) {
      Point point;
      for (Expr v : free_vars(e)) point[v] = random_value(v.dtype(), random);
      ASSERT_NO_FATAL_FAILURE(expect_same_value(e, simple, point));
    }
  }
}

TEST(Simplify, KeepsTheValueWhereFactsHold) {
  Random random(2);
  int shorter = 0;
  ExprPool pool;
  Simplifier simplifier(pool);
  ExpressionGenerator generator(pool, random);
  for (int trial = 0; trial < 3000; ++trial) {
    const DType dtype = random.chance(80) ? DType::I64 : DType::I32;
    const Expr e = random.chance(50) ? generator.truth(dtype, 3) : generator.number(dtype, 3);
    const Expr i = pool.index("i");
    const Expr j = pool.index("j");
    const Expr n = pool.index("N");
    const Expr s = pool.index("s");
    const int64_t factor = random.in(1, 4);
    Facts facts;
    facts.add_size(n);
    facts.add_axis(i, pool.binary(Op::Mul, n, pool.integer(factor)));
    facts.add_axis(j, pool.integer(8));
    const bool is_guarded = random.chance(50);
    if (is_guarded) facts.assume(pool.binary(Op::Le, s, i));
    const Expr simple = simplifier.simplify(e, &facts);
    shorter += simple != simplifier.simplify(e) ? 1 : 0;
    ASSERT_LE(simple.tree_size(), e.tree_size());
    ASSERT_EQ(simplifier.simplify(simple, &facts), simple) << to_string(e) << "\n"
                                                           << to_string(simple);
    for (int k = 0; k < 20; ++k) {
      Point point;
      for (Expr v : free_vars(e)) point[v] = random_value(v.dtype(), random);
      point[n] = int_value(random.in(1, 6));
      point[i] = int_value(random.in(0, point[n].i * factor - 1));
      point[j] = int_value(random.in(0, 7));
      point[s] = int_value(random.in(-5, is_guarded ? point[i].i : 20));
      ASSERT_NO_FATAL_FAILURE(expect_same_value(e, simple, point));
    }
  }
  EXPECT_GT(shorter, 100);  // the facts are of use
}

TEST(Simplify, KnownForms) {
  ExprPool pool;
  Scope scope;
  for (const char* v : {"i", "j", "c", "N"}) scope.add_var(v, DType::I64);
  scope.add_var("x", DType::F32);
  scope.add_var("k", DType::I32);
  scope.add_tensor("T", DType::F32, 1);
  Facts facts;
  facts.add_size(pool.index("N"));
  facts.add_axis(pool.index("i"), pool.index("N"));
  facts.add_axis(pool.index("c"), pool.integer(8));
  Simplifier simplifier(pool);
  const std::pair<const char*, const char*> cases[] = {
      {"1 + i + 2", "i + 3"},
      {"(i + 3) - (j + 5)", "i - j - 2"},
      {"(i * 8 + c) / 8", "i"},
      {"(i * 8 + c) % 8", "c"},
      {"(c + i * 16) / 8", "i * 2"},
      {"i / 4 * 4 + i % 4", "i"},
      {"i / 4 / 2", "i / 8"},
      {"j / 4294967296 / 4294967296", "j / 4294967296 / 4294967296"},
      {"where(i < N, T[i], 0.0)", "T[i]"},
      {"where(i < N and c >= 0, T[i], 0.0)", "T[i]"},
      {"where(j < N, T[i + 0], T[i])", "T[i]"},
      {"min(i, N - 1)", "i"},
      {"max(c - 7, 0)", "0"},
      {"2.0 * x", "x * 2.0"},
      {"x + 0.0", "x + 0.0"},
      {"x - 0.0", "x"},
      {"x * 0.0", "x * 0.0"},
      {"0.0 / 0.0 + x", "0.0 / 0.0 + x"},
      {"k < k + i32(1)", "k < k + i32(1)"},
      {"sum[r < N + 0] T[r * 1]", "sum[r < N] T[r]"},
      {"f32(bool(3)) * x", "x"},
  };
  for (const auto& [before, after] : cases) {
    std::string messages;
    const Expr e = parse_text(before, scope, pool, &messages);
    ASSERT_TRUE(e) << messages;
    EXPECT_EQ(to_string(simplifier.simplify(e, &facts)), after) << before;
  }
}

}  // namespace
}  // namespace nautilus::expr
