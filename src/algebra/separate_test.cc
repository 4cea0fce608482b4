// SPDX-License-Identifier: Apache-2.0
#include "algebra/separate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "algebra/repair.h"
#include "expr/expr_test_util.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Op;

// Running values r, q; streamed values s, x, v, w (tensors over j); fixed values k, n, eps.
class SeparateTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    scope.add_var("j", DType::I64);
    scope.add_var("i", DType::I64);
    for (std::string_view n : {"k", "n", "eps"}) scope.add_var(n, DType::F32);
    for (std::string_view n : {"r", "q"}) scope.add_tensor(n, DType::F32, 1);
    for (std::string_view n : {"s", "x", "v", "w"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  Outcome<Separation> separate(std::string_view text) {
    Separator s(pool_, {parse("r[i]"), parse("q[i]")}, {parse("j")}, signs_);
    return s.separate(parse(text));
  }

  // Value at a point: tensors and scalars by name.
  using Point = std::map<std::string, double>;
  double value(Expr e, const Point& p) {
    switch (e.op()) {
      case Op::FloatConst:
        return e.number();
      case Op::IntConst:
      case Op::BoolConst:
        return static_cast<double>(e.integer());
      case Op::Var:
      case Op::Read:
        return p.at(std::string(e.name().str()));
      case Op::Select:
        return value(e[0], p) != 0 ? value(e[1], p) : value(e[2], p);
      default: {
        const DType operand = e.args().back().dtype();
        expr::Value args[3];
        for (size_t k = 0; k < e.args().size(); ++k) {
          const double x = value(e[k], p);
          args[k] = is_float(e[k].dtype()) ? expr::float_value(x)
                                           : expr::int_value(static_cast<int64_t>(x));
        }
        if (e.op() == Op::Cast) return args[0].f;
        const expr::Value out = expr::apply(e.op(), e.dtype(), operand, args);
        return is_float(e.dtype()) ? out.f : static_cast<double>(out.i);
      }
    }
  }

  double value(const RunningPart& part, const Point& p) {
    double out = 1;
    for (const Power& x : part.powers) out *= std::pow(value(x.atom, p), x.exponent);
    for (const ExpTerm& x : part.exponents) {
      const double e = x.sign * value(x.core, p) * (x.factor ? value(x.factor, p) : 1);
      out *= x.is_base2 ? std::exp2(e) : std::exp(e);
    }
    return out;
  }

  Point random_point() {
    std::uniform_real_distribution<double> d(0.3, 2.5);
    Point p;
    for (const char* n : {"r", "q", "s", "x", "v", "w", "k", "n", "eps"}) p[n] = d(random_);
    p["i"] = 3;
    p["j"] = static_cast<double>(random_() % 8);
    return p;
  }

  // The terms add up to the expression, at random points, and the rank is the one expected.
  void expect_rank(std::string_view text, size_t rank) {
    const auto s = separate(text);
    ASSERT_TRUE(s) << text << ": " << s.rejection().message;
    EXPECT_EQ(s->terms.size(), rank) << text;
    const Expr e = parse(text);
    for (int n = 0; n < 16; ++n) {
      const Point p = random_point();
      double sum = 0;
      for (const SeparatedTerm& t : s->terms) sum += value(t.running, p) * value(t.streamed, p);
      const double want = value(e, p);
      EXPECT_NEAR(sum, want, 1e-9 * (1 + std::fabs(want))) << text;
    }
    for (const SeparatedTerm& t : s->terms) {
      for (std::string_view moving : {"r[i]", "q[i]"}) {
        bool is_found = false;
        expr::for_each(t.streamed, [&](Expr x) { is_found |= x == parse(moving); });
        EXPECT_FALSE(is_found) << text << ": " << expr::to_string(t.streamed);
      }
    }
  }

  // Method B: F is separable iff F(x,y) F(x0,y0) = F(x,y0) F(x0,y), at random points.
  bool is_separable_by_points(std::string_view text) {
    const Expr e = parse(text);
    for (int n = 0; n < 16; ++n) {
      const Point a = random_point();
      const Point b = random_point();
      auto mixed = [&](const Point& running, const Point& streamed) {
        Point p = a;
        for (const char* name : {"r", "q"}) p[name] = running.at(name);
        for (const char* name : {"s", "x", "v", "w", "j"}) p[name] = streamed.at(name);
        return value(e, p);
      };
      const double left = mixed(a, a) * mixed(b, b);
      const double right = mixed(b, a) * mixed(a, b);
      if (std::fabs(left - right) > 1e-9 * (std::fabs(left) + std::fabs(right))) return false;
    }
    return true;
  }

  void expect_rejected(std::string_view text, std::string_view code) {
    const auto s = separate(text);
    ASSERT_FALSE(s) << text;
    EXPECT_EQ(s.rejection().code, code) << text << ": " << s.rejection().message;
    EXPECT_FALSE(is_separable_by_points(text)) << text;
  }

  expr::ExprPool pool_;
  Signs signs_;
  std::mt19937 random_{1};
};

TEST_F(SeparateTest, RankOne) {
  for (std::string_view text : {
           "exp(s[j] - r[i])",                                  // softmax sum
           "exp2(s[j] * k - r[i] * k)",                         // in base 2
           "exp2((s[j] - r[i]) * k)",                           // not distributed
           "exp(s[j] - r[i]) * v[j]",                           // softmax and matmul
           "exp(s[j] - r[i]) / q[i] * v[j]",                    // normalised before
           "exp(s[j] - where(r[i] == -inf, 0.0, r[i]))",        // safe reference
           "where(s[j] > 1.0, exp(s[j] - r[i]), 0.0)",          // masked
           "exp(where(s[j] > 1.0, s[j] - r[i], x[j] - r[i]))",  // select in the exponent
           "s[j] * exp(s[j] - r[i])",                           // entropy, not centred
           "x[j] * rsqrt(r[i] / n + eps) * v[j] * w[j]",        // norm and matmul
           "(x[j] / r[i]) * (x[j] / r[i])",                     // L2 scaled by amax
           "-x[j] / r[i]",                                      //
           "tanh(x[j]) * sqrt(r[i])",                           // opaque atoms
           "exp(-(r[i] - s[j]))",                               //
           "exp(s[j]) / (exp(r[i]) * q[i])",                    //
           "where(x[j] > 1.0, x[j] * r[i], v[j] * r[i])",       // the same running part
           "pow(x[j] * r[i], 2.0)",                             //
           "exp(s[j] / k - (r[i] + q[i]) / k)",                 // two references
       }) {
    expect_rank(text, 1);
    EXPECT_TRUE(is_separable_by_points(text)) << text;
  }
}

TEST_F(SeparateTest, FiniteRank) {
  expect_rank("(x[j] - r[i]) * (x[j] - r[i])", 3);                    // variance
  expect_rank("(x[j] - r[i]) * rsqrt(q[i] + eps) * v[j] * w[j]", 2);  // layernorm and matmul
  expect_rank("x[j] + r[i]", 2);                                      // shift
  expect_rank("exp(s[j] - r[i]) * (s[j] - r[i])", 2);                 // centred entropy
  expect_rank("exp(s[j] - r[i]) / q[i] - exp(x[j] - q[i])", 2);       // two references
  expect_rank("pow(x[j] - r[i], 3.0)", 4);
  expect_rank("where(x[j] > 1.0, x[j] * r[i], v[j] * q[i])", 2);
  for (std::string_view text : {"x[j] + r[i]", "(x[j] - r[i]) * (x[j] - r[i])"})
    EXPECT_FALSE(is_separable_by_points(text)) << text;
}

TEST_F(SeparateTest, Rejected) {
  expect_rejected("sigmoid(s[j] - r[i])", "mixed");
  expect_rejected("exp(s[j] * r[i])", "mixed_exponent");
  expect_rejected("exp(s[j] / r[i])", "mixed_exponent");
  expect_rejected("max(s[j] - r[i], 0.0)", "mixed");
  expect_rejected("tanh(s[j] * r[i])", "mixed");
  expect_rejected("1.0 / (s[j] + r[i])", "divisor");
  expect_rejected("sqrt(s[j] + r[i])", "root");
  expect_rejected("where(s[j] > r[i], 1.0, 0.0)", "condition");
  expect_rejected("pow(s[j], r[i])", "power");
  expect_rejected("exp(abs(s[j] - r[i]))", "mixed_exponent");
  expect_rejected("log(s[j] + r[i])", "mixed");
  expect_rejected("floor(s[j] / r[i])", "mixed");
}

TEST_F(SeparateTest, ARoundingOfBothIsRejected) {
  const auto s = separate("f32(bf16(exp(s[j] - r[i])))");
  ASSERT_FALSE(s);
  EXPECT_EQ(s.rejection().code, "rounding");
}

TEST_F(SeparateTest, NothingRunningIsRankOneWithoutRepair) {
  const auto s = separate("sigmoid(s[j]) * v[j]");
  ASSERT_TRUE(s);
  ASSERT_EQ(s->terms.size(), 1U);
  EXPECT_TRUE(s->terms[0].running.is_one());
}

TEST_F(SeparateTest, OppositeExponentsCancel) {
  const auto s = separate("exp(s[j] - r[i]) * exp(r[i])");
  ASSERT_TRUE(s);
  ASSERT_EQ(s->terms.size(), 1U);
  EXPECT_TRUE(s->terms[0].running.is_one());
}

// h(g(r, c)) = g(r', c): the repaired term is the term against the new values.
TEST_F(SeparateTest, RepairedTermsAreTermsOfTheNewValues) {
  Signs signs;
  for (std::string_view text :
       {"exp(s[j] - r[i])", "exp2((s[j] - r[i]) * k) * v[j]", "exp(s[j] - r[i]) / q[i]",
        "x[j] * rsqrt(r[i] / n + eps)", "(x[j] / r[i]) * (x[j] / r[i])", "x[j] * sqrt(q[i])",
        "exp(s[j] - where(r[i] == -inf, 0.0, r[i]))"}) {
    const auto s = separate(text);
    ASSERT_TRUE(s) << text;
    const Expr r_new = pool_.var(pool_.name("r_new"), DType::F32);
    const Expr q_new = pool_.var(pool_.name("q_new"), DType::F32);
    const double inf = std::numeric_limits<double>::infinity();
    const Expr factor =
        repair_factor(pool_, s->terms[0].running,
                      {{parse("r[i]"), r_new, -inf}, {parse("q[i]"), q_new, 0}}, signs);
    ASSERT_TRUE(factor) << text;
    for (int n = 0; n < 16; ++n) {
      Point p = random_point();
      const Point other = random_point();
      p["r_new"] = other.at("r");
      p["q_new"] = other.at("q");
      Point moved = p;
      moved["r"] = p["r_new"];
      moved["q"] = p["q_new"];
      const double want = value(parse(text), moved);
      EXPECT_NEAR(value(factor, p) * value(parse(text), p), want, 1e-9 * (1 + std::fabs(want)))
          << text;
    }
  }
}

TEST_F(SeparateTest, RepairIsStableAndSafe) {
  const double inf = std::numeric_limits<double>::infinity();
  const Expr r_new = pool_.var(pool_.name("m"), DType::F32);
  auto factor = [&](std::string_view text) {
    const auto s = separate(text);
    return repair_factor(pool_, s->terms[0].running, {{parse("r[i]"), r_new, -inf}}, signs_);
  };
  const Expr safe = factor("exp2(s[j] - where(r[i] == -inf, 0.0, r[i]))");
  // One exponential of a difference, the old value without its guard.
  EXPECT_EQ(expr::to_string(safe), "exp2(r[i] - where(m == -inf, 0.0, m))");
  EXPECT_EQ(value(safe, {{"r", -inf}, {"m", -inf}}), 0);
  EXPECT_EQ(value(safe, {{"r", -inf}, {"m", -500}}), 0);
  EXPECT_EQ(value(safe, {{"r", 2}, {"m", 2}}), 1);
  // A factor of unknown sign: an untouched row is recognised instead.
  const Expr unknown = factor("exp2((s[j] - where(r[i] == -inf, 0.0, r[i])) * k)");
  EXPECT_EQ(value(unknown, {{"r", -inf}, {"m", 4}, {"k", -1}}), 0);
  EXPECT_EQ(value(unknown, {{"r", 3}, {"m", 4}, {"k", -1}}), 2);
  // 0 / 0 of a row of zeros.
  const Expr ratio = factor("x[j] / r[i]");
  EXPECT_EQ(value(ratio, {{"r", 0}, {"m", 0}}), 1);
  EXPECT_EQ(value(ratio, {{"r", 0}, {"m", 2}}), 0);
}

}  // namespace
}  // namespace nautilus::algebra
