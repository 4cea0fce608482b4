// SPDX-License-Identifier: Apache-2.0
#ifdef NAUTILUS_SQLITE
#include "tune/records/database.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "spec/equations_hash.h"
#include "tune/records/best.h"
#include "tune/records/shipped.h"

namespace nautilus::tune {
namespace {

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / fmt::format("nautilus-db-{}", ::getpid()))
                  .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::unique_ptr<Database> open(const std::string& name, Access access = Access::Write) {
    return Database::open(path(name), access, &error_);
  }
  std::vector<Trial> all(const Database& db) {
    auto found = db.find({}, &error_);
    EXPECT_TRUE(found) << error_;
    return found.value_or(std::vector<Trial>());
  }

  std::string folder_;
  std::string error_;
};

Trial trial(int64_t size, const std::string& schedule, double time) {
  Trial t;
  t.problem = {"00ff", {{"M", size}}, "sm_90a", "emulator"};
  t.program = "softmax";
  t.schedule = schedule;
  t.verdict = Verdict::Timed;
  t.times = {time};
  t.compiler = "0.1.0";
  t.date = "2026-11-17T07:00:00Z";
  return t;
}

TEST_F(DatabaseTest, KeepsWhatWasAdded) {
  {
    const auto db = open("a.db");
    ASSERT_TRUE(db) << error_;
    ASSERT_TRUE(db->add(trial(64, "s", 1), &error_)) << error_;
    ASSERT_TRUE(db->add(trial(64, "s", 1), &error_)) << error_;  // once more: one row
    ASSERT_TRUE(db->add(trial(80, "t", 2), &error_)) << error_;
  }
  const auto db = open("a.db", Access::Read);
  ASSERT_TRUE(db) << error_;
  EXPECT_EQ(all(*db).size(), 2u);
  const auto found = db->find(Query::of(trial(80, "", 0).problem), &error_);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0], trial(80, "t", 2));
  EXPECT_EQ(db->problems(&error_)->size(), 2u);
}

// Merging is a union: in any order, any number of times, the same rows.
TEST_F(DatabaseTest, MergingIsCommutativeAndIdempotent) {
  base::Random random(3);
  std::vector<std::vector<Trial>> parts(3);
  for (int k = 0; k < 60; ++k) {
    const Trial t = trial(random.integer(1, 4), fmt::format("s{}", random.integer(1, 9)),
                          static_cast<double>(random.integer(1, 5)));
    parts[static_cast<size_t>(random.integer(0, 2))].push_back(t);
    parts[static_cast<size_t>(random.integer(0, 2))].push_back(t);
  }
  const auto forward = open("a.db");
  const auto backward = open("b.db");
  ASSERT_TRUE(forward && backward) << error_;
  for (size_t k = 0; k < parts.size(); ++k) {
    ASSERT_TRUE(forward->add(parts[k], &error_)) << error_;
    ASSERT_TRUE(backward->add(parts[parts.size() - 1 - k], &error_)) << error_;
  }
  const auto once = all(*forward);
  EXPECT_EQ(once, all(*backward));
  ASSERT_TRUE(forward->add(all(*backward), &error_)) << error_;
  EXPECT_EQ(once, all(*forward));
}

TEST_F(DatabaseTest, OtherFilesAreRefusedAndStayAsTheyAre) {
  const std::string text(5000, 'x');
  ASSERT_TRUE(base::write_file_atomic(path("text.db"), text, &error_));
  EXPECT_FALSE(open("text.db"));
  EXPECT_NE(error_.find("text.db"), std::string::npos);
  EXPECT_EQ(base::read_file(path("text.db"), &error_), text);
  EXPECT_FALSE(open("none.db", Access::Read));
  EXPECT_FALSE(std::filesystem::exists(path("none.db")));
}

TEST_F(DatabaseTest, AFileThatWasCutIsReported) {
  {
    const auto db = open("a.db");
    ASSERT_TRUE(db);
    std::vector<Trial> many;
    for (int k = 0; k < 500; ++k) many.push_back(trial(k, std::string(200, 's'), 1));
    ASSERT_TRUE(db->add(many, &error_)) << error_;
  }
  std::filesystem::resize_file(path("a.db"), std::filesystem::file_size(path("a.db")) / 2);
  const auto db = open("a.db", Access::Read);
  if (db) {
    EXPECT_FALSE(db->find({}, &error_));
  }
  EXPECT_NE(error_.find("a.db"), std::string::npos) << error_;
}

// Killed in the middle, a writer has lost at most what it was adding; two write at the same time.
TEST_F(DatabaseTest, WritersMayBeManyAndMayBeKilled) {
  constexpr int kWriters = 2;
  ASSERT_TRUE(open("a.db"));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  std::vector<pid_t> writers;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::string error;
      const auto db = Database::open(path("a.db"), Access::Write, &error);
      for (int k = 0; db && k < 100000; ++k) {
        if (!db->add(trial(w, fmt::format("s{}", k), 1), &error)) _exit(1);
        if (k == 5 && write(ready[1], "x", 1) != 1) _exit(1);
      }
      _exit(1);
    }
    writers.push_back(pid);
  }
  char byte = 0;
  for (int w = 0; w < kWriters; ++w) ASSERT_EQ(read(ready[0], &byte, 1), 1);
  for (const pid_t pid : writers) {
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  close(ready[0]);
  close(ready[1]);
  const auto db = open("a.db");
  ASSERT_TRUE(db) << error_;
  EXPECT_GE(all(*db).size(), 12u);
  EXPECT_TRUE(db->add(trial(9, "after", 1), &error_)) << error_;
}

TEST_F(DatabaseTest, GarbageIsWhatIsSlower) {
  const auto db = open("a.db");
  ASSERT_TRUE(db->add({trial(1, "fast", 1), trial(1, "slow", 2), trial(2, "only", 3)}, &error_));
  EXPECT_EQ(db->drop_slower(&error_), 1);
  const auto left = all(*db);
  ASSERT_EQ(left.size(), 2u);
  for (const Trial& t : left) EXPECT_NE(t.schedule, "slow");
}

// The schedule of compile, run and bench: the winner at the hints, from devices, if it still
// applies.
TEST_F(DatabaseTest, TheBestOfAProgramIsFound) {
  driver::Unit unit;
  const std::string file = std::string(NAUTILUS_SOURCE_DIR) + "/examples/softmax.naut";
  const auto text = base::read_file(file, &error_);
  const auto program = driver::load_text(file, *text, {}, unit);
  auto first = driver::first_schedule(*program, unit);
  driver::complete(*first, unit);
  Trial t = trial(0, schedule::print(first->decisions), 2);
  t.problem = {spec::equations_hash(*program), hinted_sizes(*program), "sm_90a", "emulator"};
  const auto best = [&] { return best_of(*program, path("a.db"), &error_); };
  EXPECT_FALSE(best());  // no file
  const auto db = open("a.db");
  ASSERT_TRUE(db->add(t, &error_));
  EXPECT_FALSE(best());  // steps are not times
  t.problem.machine = "NVIDIA H200";
  ASSERT_TRUE(db->add(t, &error_));
  ASSERT_TRUE(best());
  EXPECT_EQ(best()->machine, "NVIDIA H200");
  EXPECT_EQ(best()->winner.schedule, t.schedule);
  t.schedule = "a schedule of another time";
  t.times = {1};
  ASSERT_TRUE(db->add(t, &error_));
  // A faster schedule that no longer applies does not hide the next.
  ASSERT_TRUE(best());
  EXPECT_EQ(best()->winner.schedule, schedule::print(first->decisions));
  EXPECT_EQ(best()->passed_over, 1u);
  EXPECT_NE(note(*best()).find("1 better ones no longer apply"), std::string::npos);
  EXPECT_EQ(error_, "");
  t.problem.sizes["M"] += 1;
  EXPECT_FALSE(best_of(driver::with_hints(*program, t.problem.sizes), path("a.db"), &error_));
}

// Where nothing was tuned, the trials that come with the compiler count.
TEST_F(DatabaseTest, ShippedTrialsAreTheFallback) {
  const Query all = {};
  const std::vector<Trial> shipped = shipped_trials(all);
  ASSERT_FALSE(shipped.empty());
  driver::Unit unit;
  const std::string file = std::string(NAUTILUS_SOURCE_DIR) + "/golden/attention_causal.naut";
  const auto text = base::read_file(file, &error_);
  ASSERT_TRUE(text) << error_;
  const Trial* known = nullptr;
  std::optional<ir::Program> program;
  for (const Trial& t : shipped) {
    if (t.program != "attention_causal" || t.verdict != Verdict::Timed) continue;
    std::map<std::string, int64_t> sizes = t.problem.sizes;
    sizes["D"] = 128;
    const auto loaded = driver::load_text(file, *text, {{"D", 128}}, unit);
    ASSERT_TRUE(loaded);
    program = driver::with_hints(*loaded, sizes);
    if (spec::equations_hash(*program) != t.problem.equations) continue;
    known = &t;
    break;
  }
  ASSERT_TRUE(known) << "no shipped trial is of golden/attention_causal.naut with D = 128";
  const auto best = best_of(*program, path("none.db"), &error_);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->machine, known->problem.machine);
  EXPECT_EQ(best->source, "trials that come with the compiler");
  EXPECT_EQ(error_, "");
  // The user's own trials come first.
  Trial own = *known;
  own.problem.machine = "another";
  own.schedule = best->winner.schedule;
  ASSERT_TRUE(open("a.db")->add(own, &error_)) << error_;
  EXPECT_EQ(best_of(*program, path("a.db"), &error_)->source, path("a.db"));
}

TEST(BestThatApplies, StopsAfterSoMany) {
  std::vector<Trial> trials;
  for (int i = 0; i < 20; ++i) {
    Trial t;
    t.problem.machine = "a device";
    t.schedule = std::string(static_cast<size_t>(i + 1), 'x');
    t.verdict = Verdict::Timed;
    t.times = {static_cast<double>(i + 1)};
    trials.push_back(t);
  }
  size_t asked = 0;
  const auto refuse = [&](const std::string&) { return ++asked == 0; };
  EXPECT_FALSE(best_that_applies(trials, refuse));
  EXPECT_EQ(asked, kMostTried);
  const auto third = [](const std::string& s) { return s.size() == 3; };
  const auto best = best_that_applies(trials, third);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->winner.schedule, "xxx");
  EXPECT_EQ(best->passed_over, 2u);
}

}  // namespace
}  // namespace nautilus::tune
#endif
