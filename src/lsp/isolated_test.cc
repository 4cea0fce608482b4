// SPDX-License-Identifier: Apache-2.0
#include "lsp/isolated.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/check.h"

namespace nautilus::lsp {
namespace {

TEST(LspIsolated, GivesWhatTheWorkReturns) {
  const std::string large(1 << 20, 'x');
  const auto result = run_isolated([&] { return large; }, 20);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.output, large);
}

TEST(LspIsolated, AFailedCheckIsAReport) {
  const auto result = run_isolated(
      []() -> std::string {
        NAUT_CHECK(false, "broken on purpose");
        return "";
      },
      20);
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.report.find("broken on purpose"), std::string::npos) << result.report;
}

TEST(LspIsolated, ACrashAndALoopAreReports) {
  const auto crashed = run_isolated([]() -> std::string { std::abort(); }, 20);
  EXPECT_FALSE(crashed.ok);
  EXPECT_NE(crashed.report.find("signal"), std::string::npos) << crashed.report;
  const auto endless = run_isolated(
      []() -> std::string {
        for (;;) ::pause();
      },
      0.1);
  EXPECT_FALSE(endless.ok);
  EXPECT_NE(endless.report.find("took more"), std::string::npos) << endless.report;
}

}  // namespace
}  // namespace nautilus::lsp
