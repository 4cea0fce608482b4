// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/trial_process.h"

#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

const Problem kProblem = {"00ff", {{"M", 64}}, "sm_90a", "emulator"};

TEST(TrialProcess, TheNextTrialHasAnotherProcess) {
  std::string error;
  TrialProcess process({"sh", "-c", "read line; kill -9 $$"}, kProblem, 60);
  for (const char* schedule : {"one", "two"}) {
    const auto trial = process.measure(schedule, &error);
    ASSERT_TRUE(trial) << error;
    EXPECT_EQ(trial->verdict, Verdict::Failed);
    EXPECT_EQ(trial->reason, "its process ended by signal 9 (Killed)");
    EXPECT_EQ(trial->schedule, schedule);
    EXPECT_EQ(trial->problem, kProblem);
  }
}

TEST(TrialProcess, WhatDoesNotEndIsStopped) {
  std::string error;
  TrialProcess process({"sleep", "1000"}, kProblem, 0.05);
  const auto trial = process.measure("s", &error);
  ASSERT_TRUE(trial) << error;
  EXPECT_EQ(trial->verdict, Verdict::Hung);
  EXPECT_EQ(trial->reason, "not done in 0.05 s");
}

TEST(TrialProcess, AnswersAreTrials) {
  Trial told;
  told.problem = kProblem;
  told.program = "softmax";
  told.schedule = "complete";
  told.verdict = Verdict::Timed;
  told.times = {3};
  std::string error;
  TrialProcess process({"sh", "-c", "while read line; do echo '" + to_json(told) + "'; done"},
                       kProblem, 60);
  EXPECT_EQ(process.measure("short", &error), told);
  EXPECT_EQ(process.measure("short", &error), told);
  TrialProcess other({"cat"}, kProblem, 60);
  EXPECT_FALSE(other.measure("s", &error));
  EXPECT_EQ(error.find("what measures does not answer with trials: "), 0u) << error;
  TrialProcess none({"/no/such/program"}, kProblem, 60);
  EXPECT_FALSE(none.measure("s", &error));
}

}  // namespace
}  // namespace nautilus::tune
