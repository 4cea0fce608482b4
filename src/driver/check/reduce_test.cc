// SPDX-License-Identifier: Apache-2.0
#include "driver/check/reduce.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

constexpr const char* kCommented = R"(# A comment.
dims M, N
hint M = 48, N = 64
X: f32[M, N]
Y: f32[M]
A[i] = sum[j] exp(X[i,j] * 2) + Y[i]  -> f32
B[i] = Y[i] * Y[i] - sqrt(A[i])       -> f32
C[i] = B[i] + 1                       -> f32
)";

TEST(Reduce, KeepsWhatTheFailureNeeds) {
  // "Fails" for every program with a square root.
  const auto has_root = [](const std::string& t) { return t.find("sqrt(") != std::string::npos; };
  const Reduction r = reduce(kCommented, has_root, 1000);
  EXPECT_NE(r.text.find("sqrt(1)"), std::string::npos) << r.text;
  EXPECT_EQ(r.text.find("exp"), std::string::npos) << r.text;
  EXPECT_EQ(r.text.find('#'), std::string::npos) << r.text;
  EXPECT_LT(r.text.size(), 40U) << r.text;
}

TEST(Reduce, MakesSizesSmaller) {
  const auto has_rows = [](const std::string& t) {
    return t.find("hint M =") != std::string::npos && t.find("M = 0") == std::string::npos;
  };
  const Reduction r = reduce(kCommented, has_rows, 1000);
  EXPECT_EQ(r.text, "hint M = 1, N = 1\n");
}

TEST(Reduce, StopsWhenAskedTo) {
  const Reduction r = reduce(
      kCommented, [](const std::string&) { return false; }, 5);
  EXPECT_EQ(r.text, kCommented);
  EXPECT_EQ(r.tried, 5);
}

TEST(Reduce, TakesTextOfAnyKind) {
  EXPECT_EQ(reduce(
                "", [](const std::string&) { return true; }, 100)
                .text,
            "");
  EXPECT_EQ(reduce(
                "matile.program @x\n  dim M\n",
                [](const std::string& t) { return t.find("dim") != std::string::npos; }, 100)
                .text,
            "  dim M\n");
}

}  // namespace
}  // namespace nautilus::driver
