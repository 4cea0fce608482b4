// SPDX-License-Identifier: Apache-2.0
#include "driver/run/fit.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

const std::vector<std::string>& folders() {
  static const std::vector<std::string> all = {std::string(NAUTILUS_SOURCE_DIR) + "/golden"};
  return all;
}

TEST(Fit, RowsOfASweepAreRead) {
  std::string error;
  const auto problems = measured_problems(
      R"({"candidate": "cudnn", "ms_median": 3.0}
{"candidate": "128x64 2 groups", "ms_median": 2.5, "schedule": "a_full-B1-D64-Hk2/a_full.1.sched"}
{"candidate": "64x64 1 group", "ms_median": 2.75, "schedule": "a_full-B1-D64-Hk2/a_full.2.sched"}

{"candidate": "64x64 1 group", "ms_median": 0.5, "schedule": "gemm/gemm.2.sched"}
)",
      &error);
  ASSERT_TRUE(problems) << error;
  ASSERT_EQ(problems->size(), 2u);
  EXPECT_EQ((*problems)[0].text(), "a_full B=1 D=64 Hk=2");
  EXPECT_EQ((*problems)[0].family(), "a_full D=64");
  EXPECT_EQ((*problems)[0].ms.at("64x64 1 group"), 2.75);
  EXPECT_EQ((*problems)[1].text(), "gemm");
  EXPECT_FALSE(measured_problems("{\"candidate\": 1}\nno row\n", &error));
  EXPECT_EQ(error, "line 2 is no row of measurements");
}

// Times of a machine with one different constant: the fit finds the direction.
TEST(Fit, FindsTheConstantThatMadeTheTimes) {
  target::Target machine = target::sm_90a();
  machine.costs.alone_factor *= 0.6;  // then copies take most of the time
  std::vector<MeasuredProblem> problems;
  for (const int64_t size : {2048, 8192}) {
    MeasuredProblem p;
    p.program = "gemm_nt";
    p.sizes = {{"M", size}, {"N", size}, {"K", size}};
    p.ms = predicted_cycles(p, folders(), machine);
    ASSERT_GT(p.ms.size(), 4u);
    problems.push_back(std::move(p));
  }
  std::string error;
  std::vector<std::string> kinds;  // of steps that it tells
  const auto tell = [&](const Step& step) {
    EXPECT_LE(step.number, step.count);
    if (step.number == 1) kinds.push_back(step.what);
  };
  const auto report = fit_costs(problems, folders(), target::sm_90a(), tell, &error);
  ASSERT_TRUE(report) << error;
  EXPECT_EQ(report->problems, 2u);
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds.front(), "candidates of measured problems");
  EXPECT_EQ(kinds.back(), "constants for all programs");
  for (const FittedConstant& c : report->constants) {
    if (c.name == "costs.alone_factor") {
      EXPECT_LT(c.value, 0.95 * c.in_table);
    }
    // A product alone has no exponentials: nothing is said about what they cost.
    if (c.name == "costs.special_slots") {
      EXPECT_FALSE(c.is_probed);
      EXPECT_EQ(c.value, c.in_table);
    }
  }
}

// Other kernels of a program without tiles, on a machine whose kernels along rows are slow.
TEST(Fit, FindsWhatRowsCost) {
  const std::vector<std::string> programs = {std::string(NAUTILUS_SOURCE_DIR) + "/bench/foreign"};
  target::Target machine = target::sm_90a();
  machine.nests.row_turn_cycles *= 8;
  std::vector<MeasuredProblem> problems;
  for (const int64_t rows : {64, 256, 2048}) {
    MeasuredProblem p;
    p.program = "softmax_long";
    p.sizes = {{"M", rows}, {"N", 1000000}};
    p.ms = predicted_cycles(p, programs, machine);
    ASSERT_GT(p.ms.size(), 3u);
    problems.push_back(std::move(p));
  }
  std::string error;
  const auto report = fit_costs(
      problems, programs, target::sm_90a(), [](const Step&) {}, &error);
  ASSERT_TRUE(report) << error;
  for (const FittedConstant& c : report->constants) {
    if (c.name == "nests.row_turn_cycles") {
      EXPECT_GT(c.value, 1.05 * c.in_table);
    }
    if (c.name == "nests.sort_own") {
      EXPECT_FALSE(c.is_probed);
    }
  }
}

TEST(Fit, RowsOfUnknownProgramsAreNamed) {
  MeasuredProblem p;
  p.program = "nobody_has_it";
  p.ms = {{"a", 1}, {"b", 2}};
  std::string error;
  EXPECT_FALSE(fit_costs(
      {p}, folders(), target::sm_90a(), [](const Step&) {}, &error));
  EXPECT_EQ(error, "no row is about a candidate of a program that is there");
}

}  // namespace
}  // namespace nautilus::driver
