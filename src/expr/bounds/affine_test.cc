// SPDX-License-Identifier: Apache-2.0
//
// Polynomials have the value of the expressions they come from, obey the laws of a ring, and give
// equal index expressions one canonical form.
#include "expr/bounds/affine.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

class Generator {
 public:
  Generator(ExprPool& pool, Random& random) : pool_(pool), random_(random) {}

  Expr index(int depth) {
    static const std::vector<std::string> names = {"i", "j", "N", "M"};
    static const std::vector<Op> ops = {Op::Add, Op::Add, Op::Sub, Op::Mul};
    if (depth == 0 || random_.chance(15)) {
      return random_.chance(30) ? pool_.integer(random_.in(-5, 5)) : pool_.index(random_.of(names));
    }
    if (random_.chance(10)) return pool_.unary(Op::Neg, index(depth - 1));
    if (random_.chance(10)) {
      return pool_.binary(random_.chance(50) ? Op::FloorDiv : Op::Mod, index(depth - 1),
                          pool_.integer(random_.in(1, 5)));
    }
    return pool_.binary(random_.of(ops), index(depth - 1), index(depth - 1));
  }

  // The same polynomial written another way.
  Expr rewritten(Expr e) {
    if (e.args().empty()) return e;
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(e.op() == Op::FloorDiv ? a : rewritten(a));
    if (e.op() == Op::FloorDiv || e.op() == Op::Mod) return e;
    const Expr zero = pool_.integer(0);
    if ((e.op() == Op::Add || e.op() == Op::Mul) && random_.chance(50)) std::swap(args[0], args[1]);
    if (e.op() == Op::Sub && random_.chance(50)) {
      return pool_.binary(Op::Add, pool_.unary(Op::Neg, args[1]), args[0]);
    }
    if (e.op() == Op::Mul && args[0].op() == Op::Add && random_.chance(70)) {
      return pool_.binary(Op::Add, pool_.binary(Op::Mul, args[1], args[0][1]),
                          pool_.binary(Op::Mul, args[0][0], args[1]));
    }
    const Expr again = pool_.with_args(e, args);
    return random_.chance(20) ? pool_.binary(Op::Sub, again, zero) : again;
  }

  Point point() {
    Point p;
    for (const char* v : {"i", "j", "N", "M"}) p[pool_.index(v)] = int_value(random_.in(-6, 6));
    return p;
  }

 private:
  ExprPool& pool_;
  Random& random_;
};

int64_t value_of(const Poly& p, const Point& point) {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : p.terms()) {
    int64_t term = coefficient;
    for (Expr a : monomial) term = wrapping_mul(term, value_at(a, point).i);
    sum = wrapping_add(sum, term);
  }
  return sum;
}

TEST(Affine, PolynomialsAreARingWithTheValuesOfTheirExpressions) {
  Random random(11);
  ExprPool pool;
  Generator generator(pool, random);
  int checked = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const Expr x = generator.index(3);
    const auto p = Poly::of(x);
    const auto q = Poly::of(generator.index(2));
    const auto r = Poly::of(generator.index(2));
    if (!p || !q || !r) continue;
    const auto sum = add(*p, *q);
    const auto product = multiply(*p, *q);
    const auto pr = multiply(*p, *r);
    const auto qr = multiply(*q, *r);
    if (!sum || !product || !pr || !qr) continue;
    ++checked;
    EXPECT_EQ(*sum, *add(*q, *p));
    EXPECT_EQ(*product, *multiply(*q, *p));
    EXPECT_TRUE(add(*p, *p, -1)->is_zero());
    EXPECT_EQ(add(*add(*p, *q, 3), *q, -3), *p);
    if (const auto left = multiply(*sum, *r)) {
      EXPECT_EQ(*left, *add(*pr, *qr));
    }
    if (const auto left = multiply(*product, *r)) {
      const auto right = multiply(*p, *qr);
      EXPECT_TRUE(!right || *left == *right);
    }
    const Point point = generator.point();
    const int64_t a = value_of(*p, point);
    const int64_t b = value_of(*q, point);
    EXPECT_EQ(a, value_at(x, point).i) << to_string(x);
    EXPECT_EQ(value_at(to_expr(pool, *p), point).i, a) << to_string(x);
    EXPECT_EQ(value_of(*sum, point), wrapping_add(a, b));
    EXPECT_EQ(value_of(*product, point), wrapping_mul(a, b));
    for (Expr atom : p->atoms()) {
      const auto parts = p->split(atom);
      if (!parts) continue;
      const auto remaining = parts->first.atoms();
      EXPECT_EQ(std::count(remaining.begin(), remaining.end(), atom), 0);
      const int64_t with = wrapping_mul(value_of(parts->first, point), value_at(atom, point).i);
      EXPECT_EQ(wrapping_add(with, value_of(parts->second, point)), a);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(checked, 4000);
}

TEST(Affine, EqualIndexExpressionsHaveOneCanonicalForm) {
  Random random(12);
  ExprPool pool;
  Generator generator(pool, random);
  int changed = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const Expr x = generator.index(3);
    const Expr y = generator.rewritten(x);
    if (!Poly::of(x) || !Poly::of(y)) continue;
    changed += x != y ? 1 : 0;
    ASSERT_TRUE(same_index(x, y)) << to_string(x) << "\n" << to_string(y);
    const Expr canonical = canonical_index(pool, x);
    ASSERT_EQ(canonical, canonical_index(pool, y)) << to_string(x) << "\n" << to_string(y);
    ASSERT_EQ(canonical_index(pool, canonical), canonical) << to_string(canonical);
    ASSERT_FALSE(same_index(x, pool.binary(Op::Add, y, pool.integer(1))));
  }
  EXPECT_GT(changed, 2000);
}

TEST(Affine, CanonicalTexts) {
  ExprPool pool;
  Scope scope;
  for (const char* v : {"i", "j", "N"}) scope.add_var(v, DType::I64);
  scope.add_var("w", DType::I32);
  const std::pair<const char*, const char*> cases[] = {
      {"3 + j + i * 4 * N", "N * i * 4 + j + 3"},
      {"(i + 1) * (i - 1)", "i * i - 1"},
      {"i - i", "0"},
      {"-(i - j)", "i * -1 + j"},
      {"j - 2 * i", "i * -2 + j"},
      {"(i + 0) / 2 + i / 2", "(i + 0) / 2 + i / 2"},
      {"w + w", "w + w"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(to_string(canonical_index(pool, parse_text(text, scope, pool))), expected) << text;
  }
}

TEST(Affine, NoPolynomialWhereACoefficientOverflowsOrTheDegreeIsTooHigh) {
  ExprPool pool;
  Scope scope;
  for (const char* v : {"i", "j"}) scope.add_var(v, DType::I64);
  for (const char* text : {"i * i64(inf) * 2", "i * i64(inf) + i", "-(i * i64(-inf))",
                           "i * i * i * i * i * i * i * i * i", "i64(inf) + 1", "i64(-inf) + i",
                           "i + 9223372036854775807"}) {
    const Expr e = parse_text(text, scope, pool);
    EXPECT_FALSE(Poly::of(e)) << text;
    EXPECT_EQ(canonical_index(pool, e), e);
    EXPECT_TRUE(same_index(e, e));
  }
}

}  // namespace
}  // namespace nautilus::expr
