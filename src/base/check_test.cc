// SPDX-License-Identifier: Apache-2.0
//
// Death tests of NAUT_CHECK: the exit status and every line of the report are relied upon by
// scripts and by people copying the reproduction command.
#include "base/check.h"

#include <gtest/gtest.h>

namespace nautilus::base {
namespace {

TEST(Check, PassingCheckDoesNotEvaluateTheMessage) {
  int evaluated = 0;
  NAUT_CHECK(true, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckDeathTest, PrintsMessageAndPlace) {
  EXPECT_EXIT(NAUT_CHECK(1 + 1 == 3, "sum is {}", 2), testing::ExitedWithCode(70),
              "internal error: sum is 2\n.*check_test.cc:[0-9]+");
}

TEST(CheckDeathTest, PrintsStagesInnermostFirst) {
  auto fail = [] {
    StageScope outer("compiling a.naut", "nautilus check a.naut");
    { StageScope ended("parsing", ""); }
    StageScope inner("lowering f", "");
    NAUT_CHECK(false, "no");
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(70),
              "while lowering f\n  while compiling a.naut\n"
              "  reproduce with: nautilus check a.naut\n");
}

TEST(Check, ScopesNest) {
  EXPECT_EQ(StageScope::innermost(), nullptr);
  {
    StageScope a("a", "");
    EXPECT_EQ(StageScope::innermost(), &a);
    {
      StageInheritance none(nullptr);
      EXPECT_EQ(StageScope::innermost(), nullptr);
    }
    EXPECT_EQ(StageScope::innermost(), &a);
  }
  EXPECT_EQ(StageScope::innermost(), nullptr);
}

}  // namespace
}  // namespace nautilus::base
