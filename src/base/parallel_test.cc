// SPDX-License-Identifier: Apache-2.0
//
// Every index exactly once for awkward counts, order on one thread, and stage reports of workers.
#include "base/parallel.h"

#include <atomic>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"

namespace nautilus::base {
namespace {

TEST(Parallel, CallsEveryIndexOnce) {
  for (int64_t count : {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4097}) {
    for (int threads : {-1, 0, 1, 2, 3, 8}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      parallel_for(count, threads, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      for (const auto& n : calls) ASSERT_EQ(n.load(), 1) << count << " on " << threads;
    }
  }
  parallel_for(-5, 4, [](int64_t) { FAIL(); });
}

TEST(Parallel, OneThreadRunsInOrder) {
  std::vector<int64_t> seen;
  parallel_for(5, 1, [&](int64_t i) { seen.push_back(i); });
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Parallel, NestsAndTakesConstBodies) {
  std::atomic<int> total{0};
  const auto inner = [&](int64_t) { ++total; };
  parallel_for(4, 2, [&](int64_t) { parallel_for(5, 2, inner); });
  EXPECT_EQ(total.load(), 20);
}

TEST(Parallel, EnvironmentSetsTheThreads) {
  ::setenv("NAUTILUS_THREADS", "3", 1);
  EXPECT_EQ(default_threads(), 3);
  for (const char* bad : {"", "0", "-2", "many", "3x", "99999999999"}) {
    ::setenv("NAUTILUS_THREADS", bad, 1);
    EXPECT_GE(default_threads(), 1) << bad;
  }
  ::unsetenv("NAUTILUS_THREADS");
  EXPECT_GE(default_threads(), 1);
}

TEST(ParallelDeathTest, WorkersReportTheStageOfTheirStarter) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  auto fail = [] {
    StageScope stage("testing many files", "nautilus test");
    parallel_for(64, 4, [](int64_t i) { NAUT_CHECK(i < 0, "bad file"); });
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(70), "bad file\n.*\n  while testing many files\n");
}

}  // namespace
}  // namespace nautilus::base
