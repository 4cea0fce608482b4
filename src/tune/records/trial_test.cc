// SPDX-License-Identifier: Apache-2.0
#include "tune/records/trial.h"

#include <gtest/gtest.h>

#include "tune/records/winner.h"

namespace nautilus::tune {
namespace {

Trial timed(std::string schedule, std::vector<double> times) {
  Trial t;
  t.problem = {"0123", {{"M", 64}, {"N", 80}}, "sm_90a", "emulator"};
  t.program = "softmax";
  t.schedule = std::move(schedule);
  t.verdict = Verdict::Timed;
  t.times = std::move(times);
  t.error = 2.5e-3;
  t.compiler = "0.1.0";
  t.date = "2026-11-17T07:00:00Z";
  return t;
}

TEST(Trial, ReadsBackAsItWas) {
  Trial t = timed("kernel Y rows\n  columns 1024 tuned\n", {1.5, 2, 0.1});
  EXPECT_EQ(to_json(t).find('\n'), std::string::npos);
  std::string error;
  const auto again = trial_of_json(to_json(t), &error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(*again, t);
  EXPECT_EQ(identity(*again), identity(t));
  t.times[1] = 3;
  EXPECT_NE(identity(*again), identity(t));
}

TEST(Trial, BadLinesAreNamed) {
  const std::string good = to_json(timed("s", {1}));
  const auto without = [&](const std::string& part, const std::string& by) {
    std::string line = good;
    line.replace(line.find(part), part.size(), by);
    std::string error;
    EXPECT_FALSE(trial_of_json(line, &error)) << line;
    return error;
  };
  std::string error;
  EXPECT_FALSE(trial_of_json("[1]", &error));
  EXPECT_EQ(error, "the line is no JSON object");
  EXPECT_EQ(without("\"timed\"", "\"fast\""),
            "`verdict` is none of timed, refused, wrong, failed, hung");
  EXPECT_EQ(without("\"machine\":\"emulator\",", ""), "`machine` is missing or of another type");
  EXPECT_EQ(without("[1.0]", "[-1.0]"), "a time is no positive number");
  EXPECT_EQ(without("[1.0]", "[]"), "a timed trial has no times");
  EXPECT_EQ(without("64", "6.5"), "size `M` is no integer");
}

TEST(Winner, TheLeastMedianLeads) {
  const auto w = winner_of({timed("a", {5, 5, 5}), timed("b", {3, 3, 3}), timed("c", {4, 4, 4})});
  ASSERT_TRUE(w);
  EXPECT_EQ(w->schedule, "b");
  EXPECT_EQ(w->candidates, 3u);
  EXPECT_EQ(w->samples, 3u);
}

TEST(Winner, WhatIsNotToldApartGoesToTheRules) {
  // The quartiles of both overlap: fewer lines that a search took win, whatever the order of rows.
  const Trial by_rule = timed("tile 64", {2.9, 3.1, 3.2, 3.3});
  const Trial tuned = timed("tile 96 tuned", {2.9, 3, 3.1, 3.2});
  EXPECT_EQ(winner_of({by_rule, tuned})->schedule, "tile 64");
  EXPECT_EQ(winner_of({tuned, by_rule})->schedule, "tile 64");
}

TEST(Winner, AWrongTrialDisqualifies) {
  Trial wrong = timed("b", {});
  wrong.verdict = Verdict::Wrong;
  wrong.reason = "`Y`: element 0";
  const auto w = winner_of({timed("a", {5}), timed("b", {3}), wrong});
  ASSERT_TRUE(w);
  EXPECT_EQ(w->schedule, "a");
  EXPECT_FALSE(winner_of({wrong}));
}

TEST(Winner, TimesOfTheVersionThatAsksComeFirst) {
  const auto by = [](const char* version, Trial t) {
    t.compiler = version;
    return t;
  };
  // Version 2 makes another kernel of `a`: its old times would outweigh the new ones.
  const std::vector<Trial> trials = {by("1", timed("a", {2, 2, 2, 2, 2})),
                                     by("2", timed("a", {6, 6, 6})),
                                     by("1", timed("b", {4, 4, 4}))};
  EXPECT_EQ(winner_of(trials, "1")->schedule, "a");
  EXPECT_EQ(winner_of(trials, "2")->schedule, "b");  // which has only old ones
  EXPECT_EQ(winner_of(trials, "3")->schedule, "a");
  EXPECT_EQ(standings(trials, "2")[1].samples, 3u);
  EXPECT_EQ(standings(trials, "3")[0].samples, 8u);
  // A schedule that was wrong and is right now, and vice versa.
  Trial wrong = timed("c", {});
  wrong.verdict = Verdict::Wrong;
  EXPECT_EQ(winner_of({by("1", wrong), by("2", timed("c", {1}))}, "2")->schedule, "c");
  EXPECT_FALSE(winner_of({by("2", wrong), by("1", timed("c", {1}))}, "2"));
}

}  // namespace
}  // namespace nautilus::tune
