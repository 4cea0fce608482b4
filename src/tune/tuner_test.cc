// SPDX-License-Identifier: Apache-2.0
// Whole searches in the emulator, with workers that answer, crash and hang.
#ifdef NAUTILUS_EMULATOR
#include "tune/tuner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace nautilus::tune {
namespace {

class TunerTest : public testing::Test {
 protected:
  void SetUp() override {
    take("rmsnorm");
    subject_.emulates = true;
    options_.worker = {std::string(NAUTILUS_TOOL_DIR) + "/nautilus", "propose", subject_.path,
                       "--emulate"};
    options_.seconds = 600;
    options_.trials = 3;
  }

  void take(const std::string& example) {
    subject_.path = fmt::format("{}/examples/{}.naut", NAUTILUS_SOURCE_DIR, example);
    subject_.text = base::read_file(subject_.path, &error_).value_or("");
    ASSERT_FALSE(subject_.text.empty()) << error_;
  }

  std::optional<TuneResult> run(Database* database = nullptr) {
    return tune(
        subject_, options_, database,
        [&](const Progress& p) {
          told_.push_back(*p.trial);
          best_.push_back(p.best);
        },
        [] { return false; }, &error_);
  }

  Subject subject_;
  TuneOptions options_;
  std::vector<Trial> told_;
  std::vector<double> best_;
  std::string error_;
};

TEST_F(TunerTest, TheCompilersChoiceIsFirstAndNothingIsWorse) {
  const auto result = run();
  ASSERT_TRUE(result) << error_;
  EXPECT_EQ(result->trials, 3);
  EXPECT_EQ(result->ended, "all trials were made");
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_GT(result->first, 0);
  EXPECT_EQ(median(told_[0].times), result->first);
  EXPECT_LE(result->winner.median, result->first);
  for (size_t k = 1; k < best_.size(); ++k) EXPECT_LE(best_[k], best_[k - 1]);
  EXPECT_EQ(told_[0].problem.machine, "emulator");
}

TEST_F(TunerTest, WorkersThatEndOrHangCostTheirTrialAlone) {
  take("gemm");  // has several schedules to begin with
  // Lowering works, measuring does not.
  const auto failing = [&](const std::string& how) {
    return std::vector<std::string>{
        "sh", "-c",
        fmt::format("while read -r line; do case \"$line\" in *'\"only\"'*) printf '%s\\n' "
                    "\"$line\" | {}/nautilus propose {} --emulate;; *) {};; esac; done",
                    NAUTILUS_TOOL_DIR, subject_.path, how)};
  };
  options_.worker = failing("kill -9 $$");
  EXPECT_FALSE(run());
  ASSERT_EQ(told_.size(), 3u);
  for (const Trial& t : told_) {
    EXPECT_EQ(t.verdict, Verdict::Failed);
    EXPECT_EQ(t.reason, "its process ended by signal 9 (Killed)");
  }
  told_.clear();
  options_.worker = failing("exec sleep 1000");
  options_.trial_seconds = 0.5;
  options_.trials = 1;
  EXPECT_FALSE(run());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].verdict, Verdict::Hung);
  EXPECT_EQ(error_, "no schedule could be timed; hung: not done in 0.5 s");
}

TEST_F(TunerTest, AWorkerThatSaysSomethingElseIsAnError) {
  options_.worker = {"cat"};
  EXPECT_FALSE(run());
  EXPECT_EQ(error_, "the program has no schedule: what lowers gave no answer");
}

TEST_F(TunerTest, SizesThatTheProgramHasNotAreNamed) {
  subject_.sizes = {{"Q", 4}};
  EXPECT_FALSE(run());
  EXPECT_EQ(error_, "the program has no size `Q`");
}

#ifdef NAUTILUS_SQLITE
TEST_F(TunerTest, ASearchGoesOnFromWhatIsThere) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("nautilus-tune-{}.db", ::getpid()))
          .string();
  std::filesystem::remove(path);
  const auto db = Database::open(path, Access::Write, &error_);
  ASSERT_TRUE(db) << error_;
  ASSERT_TRUE(run(db.get())) << error_;
  const std::vector<Trial> before = told_;
  told_.clear();
  const auto again = run(db.get());
  ASSERT_TRUE(again) << error_;
  EXPECT_GT(again->first, 0);  // known from the first search
  for (const Trial& t : told_) {
    for (const Trial& b : before) EXPECT_NE(t.schedule, b.schedule);
  }
  EXPECT_EQ(db->find({}, &error_)->size(), before.size() + told_.size());
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
}
#endif

}  // namespace
}  // namespace nautilus::tune
#endif
