// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "base/check.h"
#include "base/parallel.h"

namespace nautilus::base {
namespace {

TEST(Guarded, WorkThatEndsHasNoReport) {
  auto sum = std::make_shared<int>(0);
  EXPECT_EQ(run_guarded("adding", [sum] { *sum += 7; }), "");
  EXPECT_EQ(*sum, 7);
  EXPECT_EQ(sum.use_count(), 1);  // the work is gone
}

TEST(Guarded, AFailedCheckIsAReportAndTheProcessGoesOn) {
  const std::string report = run_guarded("opening a.naut", [] {
    StageScope stage("lowering f", "nautilus check a.naut");
    NAUT_CHECK(1 + 1 == 3, "sum is {}", 2);
  });
  EXPECT_EQ(report.find("internal error: sum is 2\n  at "), 0U) << report;
  EXPECT_NE(report.find("while lowering f\n  reproduce with: nautilus check a.naut\n"
                        "  while opening a.naut\n"),
            std::string::npos)
      << report;
  EXPECT_EQ(run_guarded("the next", [] {}), "");
}

TEST(Guarded, AFailedCheckOfAWorkerIsTheReportOfItsWork) {
  const std::string report = run_guarded(
      "many", [] { parallel_for(64, 4, [](int64_t i) { NAUT_CHECK(i != 40, "item {}", i); }); });
  EXPECT_NE(report.find("internal error: item 40"), std::string::npos) << report;
}

TEST(Guarded, TwoAtATimeHaveTheirOwnReports) {
  std::atomic<int> right = 0;
  parallel_for(8, 4, [&](int64_t i) {
    const std::string report = run_guarded("one", [i] { NAUT_CHECK(i % 2 == 0, "number {}", i); });
    right += i % 2 == 0 ? report.empty()
                        : report.find("number " + std::to_string(i)) != std::string::npos;
  });
  EXPECT_EQ(right, 8);
}

}  // namespace
}  // namespace nautilus::base
