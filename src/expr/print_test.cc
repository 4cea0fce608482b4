// SPDX-License-Identifier: Apache-2.0
//
// The text of an expression reads back as the identical expression, for random expressions of every
// dtype and operator; and parentheses are only where the grammar needs them.
#include "expr/print.h"

#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

DType random_dtype(Random& random) { return static_cast<DType>(random.in(0, kDTypeCount - 1)); }

// Typed expressions over one variable per dtype, tensors of rank 0 to 2 and nested reductions.
class Generator {
 public:
  Generator(ExprPool& pool, Random& random, Scope& scope) : pool_(pool), random_(random) {
    for (const std::string& d : dtype_names()) {
      const DType dtype = *parse_dtype(d);
      scope.add_var("v." + d, dtype);
      for (size_t rank = 0; rank < 3; ++rank) {
        scope.add_tensor(fmt::format("T{}_{}", rank, d), dtype, rank);
      }
    }
  }

  Expr any(DType dtype, int depth) {
    if (depth == 0 || random_.chance(10)) return leaf(dtype);
    const int64_t pick = random_.in(0, 9);
    if (pick == 0) return pool_.cast(dtype, any(random_dtype(random_), depth - 1));
    if (pick == 1) return read(dtype, depth);
    if (pick <= 3) return reduction(dtype, depth);
    if (pick == 4) {
      return pool_.select(any(DType::Bool, depth - 1), any(dtype, depth - 1),
                          any(dtype, depth - 1));
    }
    if (dtype == DType::Bool) return logic(depth);
    return is_float(dtype) ? floating(dtype, depth) : integer(dtype, depth);
  }

 private:
  Expr leaf(DType dtype) {
    if (random_.chance(40)) return constant(dtype);
    if (dtype == DType::I64 && !axes_.empty() && random_.chance(60)) return random_.of(axes_);
    return pool_.var(pool_.name(fmt::format("v.{}", name(dtype))), dtype);
  }

  Expr constant(DType dtype) {
    if (dtype == DType::Bool) return pool_.boolean(random_.chance(50));
    if (is_int(dtype)) {
      static const std::vector<int64_t> ends = {INT64_MIN, INT64_MIN + 1,
                                                INT64_MAX, INT64_MAX - 1,
                                                INT32_MIN, INT32_MAX,
                                                -128,      127,
                                                255,       0,
                                                1,         -1};
      return pool_.integer(random_.chance(50) ? random_.of(ends) : random_.any_size(), dtype);
    }
    if (dtype == DType::F32 || dtype == DType::F64) {  // any fp64 value: folding keeps them exact
      static const std::vector<double> special = {
          0.0, -0.0, 1.0, -1.0, 0.1, 1e22, -1e23, 1e300, 5e-324, HUGE_VAL, -HUGE_VAL, 123456789.0};
      const double v = std::bit_cast<double>(random_.bits());
      return pool_.floating(random_.chance(50) || std::isnan(v) ? random_.of(special) : v, dtype);
    }
    const double v = decode(dtype, random_.bits());
    const bool is_lost = std::isnan(v) || (std::isinf(v) && dtype == DType::F8E5M2);
    return pool_.floating(is_lost ? 0 : v, dtype);
  }

  Expr read(DType dtype, int depth) {
    std::vector<Expr> indices;
    const int64_t rank = random_.in(0, 2);
    for (int64_t k = 0; k < rank; ++k) {
      indices.push_back(any(random_.chance(80) ? DType::I64 : DType::I32, depth - 1));
    }
    return pool_.read(pool_.name(fmt::format("T{}_{}", rank, name(dtype))), dtype, indices);
  }

  Expr reduction(DType dtype, int depth) {
    static const std::vector<Reducer> numeric = {Reducer::Sum, Reducer::Prod, Reducer::Max,
                                                 Reducer::Min};
    const bool is_position = dtype == DType::I64 && random_.chance(40);
    Reducer reducer = random_.of(numeric);
    if (dtype == DType::Bool) reducer = random_.chance(50) ? Reducer::Any : Reducer::All;
    if (is_position) reducer = random_.chance(50) ? Reducer::ArgMax : Reducer::ArgMin;
    std::vector<Expr> extents;
    Expr init;
    const int64_t count = is_position ? 1 : random_.in(1, 2);
    for (int64_t k = 0; k < count; ++k) extents.push_back(any(DType::I64, depth - 1));
    if (!is_position && random_.chance(40)) init = any(dtype, depth - 1);
    const size_t outer = axes_.size();
    std::vector<Expr> axes;
    for (int64_t k = 0; k < count; ++k) {
      axes.push_back(pool_.index(fmt::format("k{}", axes_.size())));
      axes_.push_back(axes.back());
    }
    const DType body_dtype = is_position ? (random_.chance(50) ? DType::F32 : DType::I8) : dtype;
    const Expr body = any(body_dtype, depth - 1);
    axes_.resize(outer);
    return pool_.reduce(reducer, body, axes, extents, init);
  }

  Expr logic(int depth) {
    static const std::vector<Op> comparisons = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
    switch (random_.in(0, 3)) {
      case 0:
        return pool_.unary(Op::Not, any(DType::Bool, depth - 1));
      case 1:
      case 2:
        return pool_.binary(random_.chance(50) ? Op::And : Op::Or, any(DType::Bool, depth - 1),
                            any(DType::Bool, depth - 1));
      default: {
        const DType d = random_dtype(random_);
        const Op op = d == DType::Bool ? Op::Eq : random_.of(comparisons);
        return pool_.binary(op, any(d, depth - 1), any(d, depth - 1));
      }
    }
  }

  Expr integer(DType dtype, int depth) {
    static const std::vector<Op> ops = {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv,
                                        Op::Mod, Op::Min, Op::Max};
    if (random_.chance(20)) {
      return pool_.unary(random_.chance(70) ? Op::Neg : Op::Abs, any(dtype, depth - 1));
    }
    return pool_.binary(random_.of(ops), any(dtype, depth - 1), any(dtype, depth - 1));
  }

  Expr floating(DType dtype, int depth) {
    static const std::vector<Op> binary = {Op::Add, Op::Sub, Op::Mul, Op::Div,
                                           Op::Pow, Op::Min, Op::Max};
    if (random_.chance(60)) {
      return pool_.binary(random_.of(binary), any(dtype, depth - 1), any(dtype, depth - 1));
    }
    const auto first = static_cast<int64_t>(Op::Exp);
    const auto last = static_cast<int64_t>(Op::Round);
    const Op op = random_.chance(40) ? Op::Neg : static_cast<Op>(random_.in(first, last));
    return pool_.unary(op, any(dtype, depth - 1));
  }

  ExprPool& pool_;
  Random& random_;
  std::vector<Expr> axes_;
};

TEST(Print, TextReadsBackAsTheSameExpression) {
  Random random(5);
  ExprPool pool;
  Scope scope;
  Generator generator(pool, random, scope);
  size_t longest = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Expr e = generator.any(random_dtype(random), static_cast<int>(random.in(0, 5)));
    const std::string text = to_string(e);
    std::string messages;
    const Expr again = parse_text(text, scope, pool, &messages);
    ASSERT_EQ(again, e) << text << "\n" << (again ? to_string(again) : messages);
    longest = std::max(longest, text.size());
  }
  EXPECT_GT(longest, 500u);
}

TEST(Print, ParenthesesStandOnlyWhereTheGrammarNeedsThem) {
  ExprPool pool;
  Scope scope;
  for (const char* v : {"a", "b", "c"}) scope.add_var(v, DType::F32);
  for (const char* v : {"i", "j", "N"}) scope.add_var(v, DType::I64);
  for (const char* v : {"p", "q"}) scope.add_var(v, DType::Bool);
  scope.add_tensor("X", DType::F32, 2);
  const char* texts[] = {
      "a + b + c",
      "a + (b + c)",
      "a - (b - c)",
      "(a - b) * c",
      "a / (b * c)",
      "-a * b",
      "-(a * b)",
      "--a",
      "a - -1.0",
      "a * -1.0",
      "-0.0",
      "-inf",
      "i / 2 * 2 + i % 2",
      "i64(-inf)",
      "i64(inf)",
      "i32(-7)",
      "f64(0.1)",
      "bf16(1.5)",
      "not p and q or not (p or q)",
      "(p or q) and p",
      "p == (i < j)",
      "not i < j",
      "(not p) == q",
      "where(i < j and p, X[i, j], 0.0)",
      "max(a, min(b, c))",
      "sum[k < N] X[i, k] * X[k, j] + a",
      "sum[k < N] (X[i, k] + a)",
      "(sum[k < N] X[i, k]) * a",
      "a * (sum[k < N] X[i, k])",
      "-(sum[k < N] X[i, k])",
      "sum[k < N] -X[i, k]",
      "max[k < N from -inf] sum[l < N * 2, m < 3] X[k, l + m]",
      "argmax[k < N] X[i, k] + 1",
      "all[k < N from (p and q)] (X[i, k] > 0.0)",
  };
  for (const char* text : texts) {
    std::string messages;
    const Expr e = parse_text(text, scope, pool, &messages);
    ASSERT_TRUE(e) << messages;
    EXPECT_EQ(to_string(e), text);
  }
}

TEST(Print, ACastOfAConstantIsAConstant) {
  ExprPool pool;
  Scope scope;
  const std::pair<const char*, const char*> cases[] = {
      {"bool(3)", "true"},
      {"bool(0)", "false"},
      {"bool(0.5)", "true"},
      {"i32(true)", "i32(1)"},
      {"f32(false)", "0.0"},
      {"i8(300)", "i8(44)"},
      {"u8(-1)", "u8(inf)"},
      {"u8(-1.0)", "u8(0)"},
      {"i8(1e9)", "i8(inf)"},
      {"f32(f64(0.1))", "0.10000000149011612"},
      {"f8e4m3(1000.0)", "f8e4m3(448.0)"},
      {"i64(f32(16777217))", "16777216"},
  };
  for (const auto& [text, expected] : cases) {
    const Expr e = parse_text(text, scope, pool);
    ASSERT_TRUE(e) << text;
    EXPECT_TRUE(e.is_const()) << text;
    EXPECT_EQ(to_string(e), expected);
  }
}

}  // namespace
}  // namespace nautilus::expr
