// SPDX-License-Identifier: Apache-2.0
// Verification with a fake compiler that answers as the test says, and once with the emulator.
#ifdef NAUTILUS_SQLITE
#include "tune/measure/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "tune/measure/known_program.h"

namespace nautilus::tune {
namespace {

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / fmt::format("nautilus-verify-{}", getpid()))
                  .string();
    std::filesystem::remove_all(folder_);
    database_ = Database::open(folder_ + "/a.db", Access::Write, &error_);
    ASSERT_TRUE(database_) << error_;
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  Trial made(const std::string& schedule, std::vector<double> times) const {
    Trial t;
    t.problem = problem_;
    t.program = "softmax";
    t.schedule = schedule;
    t.verdict = Verdict::Timed;
    t.times = std::move(times);
    t.compiler = "0.0.1";
    t.date = "2026-11-17T07:00:00Z";
    return t;
  }
  void record(const std::string& schedule, std::vector<double> times) {
    ASSERT_TRUE(database_->add(made(schedule, std::move(times)), &error_)) << error_;
  }
  // The present compiler's answer to a schedule; "" is its own choice.
  void answer(const std::string& schedule, std::vector<double> times) {
    answers_[schedule] = made(schedule.empty() ? "own" : schedule, std::move(times));
  }
  void answer(const std::string& schedule, Verdict verdict, const std::string& reason) {
    Trial t = made(schedule, {});
    t.verdict = verdict;
    t.reason = reason;
    answers_[schedule] = t;
  }

  std::optional<Verification> run() {
    asked_.clear();
    error_.clear();
    return verify(
        *database_, problem_, options_,
        [&](const std::string& schedule, std::string* error) -> std::optional<Trial> {
          asked_.push_back(schedule);
          const auto it = answers_.find(schedule);
          if (it == answers_.end()) {
            *error = "nobody answers";
            return std::nullopt;
          }
          Trial t = it->second;
          t.compiler = "0.0.2";
          t.date = fmt::format("2026-11-18T07:00:{:02}Z", asked_.size());
          return t;
        },
        &error_);
  }
  size_t rows() { return database_->find({}, &error_)->size(); }

  Problem problem_ = {"00ff", {{"M", 64}}, "sm_90a", "NVIDIA H200"};
  VerifyOptions options_;
  std::map<std::string, Trial> answers_;
  std::vector<std::string> asked_;
  std::string folder_;
  std::string error_;
  std::unique_ptr<Database> database_;
};

TEST_F(VerifyTest, TheWinnerAndTheNextAreMeasuredInTurns) {
  record("fast", {1, 1, 1});
  record("slower", {2, 2, 2});
  record("slow", {3, 3, 3});
  record("slowest", {4, 4, 4});
  for (const char* s : {"fast", "slower", "slow", ""}) answer(s, {1.1, 1.2, 1.3});
  options_.rounds = 2;
  const auto result = run();
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Confirmed);
  EXPECT_EQ(result->reason, "");
  EXPECT_EQ(asked_,
            (std::vector<std::string>{"fast", "slower", "slow", "", "fast", "slower", "slow", ""}));
  EXPECT_EQ(rows(), 4u + 8u);  // all new trials were stored
  EXPECT_EQ(result->measured[0].recorded, 1);
  EXPECT_EQ(result->measured[0].now->median, 1.2);
}

TEST_F(VerifyTest, FasterByMoreThanTheQuartilesIsAnInversion) {
  options_.rounds = 1;
  const std::vector<std::pair<double, Standing>> cases = {{1.09, Standing::Inverted},
                                                          {1.11, Standing::Confirmed}};
  for (const auto& [time, standing] : cases) {
    problem_.sizes["M"] += 1;  // another problem
    record("fast", {1});
    record("slow", {2});
    answer("", {9});
    answer("fast", {1.0, 1.1, 1.2, 1.3, 1.4});  // its lower quartile is 1.1
    answer("slow", {time});
    const auto result = run();
    ASSERT_TRUE(result) << error_;
    EXPECT_EQ(result->standing, standing) << time;
  }
}

TEST_F(VerifyTest, TheCompilersOwnChoiceMayBeFaster) {
  record("fast", {1});
  answer("fast", {2});
  answer("", {1});
  const auto result = run();
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Inverted);
  EXPECT_EQ(result->reason, "the compiler's choice takes 0.500 of its time");
  EXPECT_EQ(result->measured.back().schedule, "own");
}

// The compiler's choice is what was recorded: times of one schedule do not invert each other.
TEST_F(VerifyTest, NoiseOfOneScheduleIsNoInversion) {
  record("own", {1});
  answer("own", {2});
  answer("", {1});
  const auto result = run();
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Confirmed);
}

TEST_F(VerifyTest, WhatTheCompilerSaysOfTheWinnerIsReported) {
  record("fast", {1});
  record("slow", {2});
  answer("slow", {2});
  answer("", {3});
  const std::vector<std::pair<Verdict, Standing>> cases = {{Verdict::Wrong, Standing::Wrong},
                                                           {Verdict::Failed, Standing::Failed},
                                                           {Verdict::Hung, Standing::Failed},
                                                           {Verdict::Refused, Standing::Refused}};
  for (const auto& [verdict, standing] : cases) {
    const auto before = database_->find({}, &error_);
    answer("fast", verdict, "line 3: because");
    options_.schedules = 2;
    const auto result = run();
    ASSERT_TRUE(result) << error_;
    EXPECT_EQ(result->standing, standing) << word(verdict);
    EXPECT_EQ(result->reason, "line 3: because");
    EXPECT_EQ(std::count(asked_.begin(), asked_.end(), "fast"), 1);  // once is enough
    EXPECT_EQ(std::count(asked_.begin(), asked_.end(), "slow"), options_.rounds);
    // A disqualifying trial would leave the next case without a winner.
    std::filesystem::remove_all(folder_);
    database_ = Database::open(folder_ + "/a.db", Access::Write, &error_);
    ASSERT_TRUE(database_->add(*before, &error_)) << error_;
  }
}

// A rival that is refused does not matter.
TEST_F(VerifyTest, OthersMayBeRefused) {
  record("fast", {1});
  record("slow", {2});
  answer("fast", {1});
  answer("slow", Verdict::Refused, "line 1: no");
  answer("", Verdict::Failed, "no");
  const auto result = run();
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Confirmed);
  EXPECT_FALSE(result->measured[1].now);
  EXPECT_EQ(result->measured[1].objection()->reason, "line 1: no");
}

TEST_F(VerifyTest, WithoutAWinnerNothingIsMeasured) {
  Trial t = made("s", {});
  t.verdict = Verdict::Wrong;
  ASSERT_TRUE(database_->add(t, &error_));
  EXPECT_FALSE(run());
  EXPECT_EQ(error_, "");
  EXPECT_TRUE(asked_.empty());
}

TEST_F(VerifyTest, WhatCannotMeasureIsAnError) {
  record("fast", {1});
  EXPECT_FALSE(run());
  EXPECT_EQ(error_, "nobody answers");
  answer("fast", {1});
  answers_["fast"].problem.machine = "another";
  EXPECT_FALSE(run());
  EXPECT_EQ(error_, "what measures answers with a trial of another problem");
}

Subject example(const std::string& name) {
  Subject out;
  std::string error;
  out.path = fmt::format("{}/examples/{}.naut", NAUTILUS_SOURCE_DIR, name);
  out.text = base::read_file(out.path, &error).value_or("");
  return out;
}

TEST_F(VerifyTest, StaticsArePartOfTheEquations) {
  std::vector<bool> is_used;
  const auto programs =
      with_statics(example("attention"), {{{"D", 128}}, {{"D", 64}}, {{"Q", 2}}}, is_used, &error_);
  ASSERT_TRUE(programs) << error_;
  ASSERT_EQ(programs->size(), 2u);  // its own D is 64
  EXPECT_NE((*programs)[0].equations, (*programs)[1].equations);
  EXPECT_EQ(is_used, (std::vector<bool>{true, true, false}));
  problem_.equations = (*programs)[1].equations;
  problem_.sizes.clear();
  for (const std::string& d : (*programs)[1].dims) problem_.sizes[d] = 48;
  std::string why;
  EXPECT_FALSE(subject_of(problem_, (*programs)[0], &why));
  EXPECT_EQ(why, "");
  const auto subject = subject_of(problem_, (*programs)[1], &why);
  ASSERT_TRUE(subject) << why;
  EXPECT_EQ(subject->sizes.at("D"), 128);
  EXPECT_EQ(subject->sizes.at("M"), 48);
  EXPECT_FALSE(subject->emulates);
  problem_.target = "sm_12";
  EXPECT_FALSE(subject_of(problem_, (*programs)[1], &why));
  EXPECT_EQ(why, "this version has no target `sm_12`");
  problem_.sizes = {{"M", 1}, {"Rows", 2}};
  EXPECT_FALSE(subject_of(problem_, (*programs)[1], &why));
  EXPECT_NE(why.find("those of the trials M, Rows"), std::string::npos) << why;
}

#ifdef NAUTILUS_EMULATOR
// With this compiler itself: its choice is confirmed, and a record that says something else was
// faster is inverted.
TEST_F(VerifyTest, TheEmulatorMeasures) {
  Subject subject = example("rmsnorm");
  subject.emulates = true;
  const auto problem = problem_of(subject, &error_);
  ASSERT_TRUE(problem) << error_;
  problem_ = *problem;
  const auto measured = [&](const std::string& schedule, std::string*) {
    return std::optional(measure(subject, schedule));
  };
  const Trial own = measure(subject, "");
  ASSERT_EQ(own.verdict, Verdict::Timed) << own.reason;
  record(own.schedule, own.times);
  auto result = verify(*database_, problem_, options_, measured, &error_);
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Confirmed);
  EXPECT_EQ(result->measured[0].now->median, own.times[0]);  // steps are the same
  record("an old line\n", {own.times[0] / 2});
  result = verify(*database_, problem_, options_, measured, &error_);
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->standing, Standing::Refused);
  EXPECT_NE(result->reason.find("line 1"), std::string::npos) << result->reason;
}
#endif

}  // namespace
}  // namespace nautilus::tune
#endif
