// SPDX-License-Identifier: Apache-2.0
// Which outputs the oracle judges, and which it reports as not judged (spec/eval/judge.h).
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "diag/render.h"
#include "driver/oracle/ladder.h"
#include "expr/error_bound.h"

namespace nautilus::driver {
namespace {

using expr::kInf;
using expr::Tensor;
using spec::Verdict;

Tensor numbers(const std::vector<double>& values, expr::DType dtype = expr::DType::F32) {
  Tensor t = Tensor::zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    t.data[i] = is_float(dtype) ? expr::float_value(values[i])
                                : expr::int_value(static_cast<int64_t>(values[i]));
  return t;
}

Verdict verdict(const std::vector<double>& got, const std::vector<double>& want,
                const std::vector<double>& bound, const ir::Numerics& numerics = {}) {
  return spec::compare(numbers(got), {numbers(want), bound}, numerics).verdict;
}

TEST(Judge, ABoundJudgesAsLongAsItTellsRightFromWrong) {
  EXPECT_EQ(verdict({1, 2}, {1, 2.1}, {0.2, 0.2}), Verdict::Accepted);
  EXPECT_EQ(verdict({1, 2}, {1, 2.3}, {0.2, 0.2}), Verdict::Wrong);
  EXPECT_EQ(verdict({1, 2}, {1, 2}, {2, 2}), Verdict::NotJudged);
  EXPECT_EQ(verdict({1, 2}, {1, 2}, {kInf, kInf}), Verdict::NotJudged);
  EXPECT_EQ(verdict({1, 9}, {1, 2}, {kInf, 0.1}), Verdict::Wrong);
}

TEST(Judge, SmallElementsAreHeldAgainstTheUsualSize) {
  EXPECT_EQ(verdict({0.1, 1, 1, 1}, {0, 1, 1, 1}, {0.4, 0.4, 0.4, 0.4}), Verdict::Accepted);
  // One that is large is not what is usual.
  EXPECT_EQ(verdict({0, 1, 1, 1e6}, {0, 1, 1, 1e6}, {9, 9, 9, 9}), Verdict::NotJudged);
  EXPECT_EQ(verdict({0, 0}, {0, 0}, {1e-6, 1e-6}), Verdict::Accepted);
}

TEST(Judge, AFewElementsMayBeUnknown) {
  EXPECT_EQ(verdict({7, 1, 1, 1}, {1, 1, 1, 1}, {kInf, 0, 0, 0}), Verdict::Accepted);
  EXPECT_EQ(verdict({7, 1, 1, 1}, {1, 1, 1, 1}, {kInf, kInf, 0, 0}), Verdict::NotJudged);
}

TEST(Judge, ADeclaredToleranceIsWhatCounts) {
  ir::Numerics numerics;
  numerics.abs = 0.1;
  EXPECT_EQ(verdict({1, 2}, {1, 2.05}, {kInf, kInf}, numerics), Verdict::Accepted);
  EXPECT_EQ(verdict({1, 2}, {1, 2.2}, {kInf, kInf}, numerics), Verdict::Wrong);
  EXPECT_EQ(verdict({1, 2}, {1, 2.2}, {0.5, 0.5}, numerics), Verdict::Wrong);
  EXPECT_EQ(verdict({1, 2}, {1, 2.05}, {0, 0}, numerics), Verdict::Accepted);
  EXPECT_EQ(verdict({1, kInf}, {1, kInf}, {0, 0}, numerics), Verdict::Accepted);
  EXPECT_EQ(verdict({1, 2}, {1, kInf}, {0, 0}, numerics), Verdict::Wrong);
  // Positions have no magnitude to compare bounds with.
  const spec::Result position{numbers({5}, expr::DType::I64), {kInf}};
  EXPECT_EQ(spec::compare(numbers({6}, expr::DType::I64), position, numerics).verdict,
            Verdict::NotJudged);
}

class JudgedProgram {
 public:
  explicit JudgedProgram(const std::string& text) {
    program_ = load_text("program.naut", text, {}, unit_);
    EXPECT_TRUE(program_) << diag::render_all(unit_.sink);
    const auto env = prepare(*program_, {}, unit_);
    worst_ = spec::evaluate(*program_, *env, {}, unit_.pool, unit_.sink);
    want_ = oracle_results(*program_, *env, {}, unit_);
    EXPECT_TRUE(worst_ && want_) << diag::render_all(unit_.sink);
  }

  const spec::Result& want() const { return want_->begin()->second; }
  // Of factor times the result plus something, judged by worst cases alone or by all there is.
  Verdict worst_case(double factor, double offset) const {
    return changed(worst_->begin()->second, factor, offset);
  }
  Verdict judged(double factor, double offset) const { return changed(want(), factor, offset); }

 private:
  Verdict changed(const spec::Result& want, double factor, double offset) const {
    Tensor got = want.value;
    for (expr::Value& v : got.data) v.f = factor * v.f + offset;
    return spec::compare(got, want, ir::numerics_of(*program_)).verdict;
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::optional<spec::Results> worst_;
  std::optional<spec::Results> want_;
};

TEST(Judge, ATransformerBlockWithoutCastsIsJudgedBySamples) {
  std::string error;
  const auto text =
      base::read_file(NAUTILUS_SOURCE_DIR "/test/kernels/block_without_casts.naut", &error);
  ASSERT_TRUE(text) << error;
  const JudgedProgram block(*text);
  EXPECT_EQ(block.worst_case(1, 0), Verdict::NotJudged);
  EXPECT_TRUE(block.want().is_sampled);
  EXPECT_EQ(block.judged(1, 0), Verdict::Accepted);
  EXPECT_EQ(block.judged(1.001, 0), Verdict::Accepted);
  EXPECT_EQ(block.judged(0, 1e6), Verdict::Wrong);
  EXPECT_EQ(block.judged(0, 0), Verdict::Wrong);
  EXPECT_EQ(block.judged(1.1, 0), Verdict::Wrong);
}

TEST(Judge, WhatRoundingDecidesIsNotJudged) {
  // Signs of numbers that are nothing but rounding.
  const JudgedProgram signs(R"(
X: f32[64]
S[i] = (X[i] + 1e8) - 1e8
Y[i] = where(S[i] > X[i], 1, -1) -> f32
)");
  EXPECT_EQ(signs.worst_case(1, 0), Verdict::NotJudged);
  EXPECT_EQ(signs.judged(1, 0), Verdict::NotJudged);
}

TEST(Judge, NarrowBoundsStayWhatTheyAre) {
  const JudgedProgram sums(R"(
X: f32[8, 16]
Y[i] = sum[k] X[i,k] * X[i,k] -> f32
)");
  EXPECT_FALSE(sums.want().is_sampled);
  EXPECT_EQ(sums.judged(1, 0), Verdict::Accepted);
  EXPECT_EQ(sums.judged(1.01, 0), Verdict::Wrong);
}

}  // namespace
}  // namespace nautilus::driver
