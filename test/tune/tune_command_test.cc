// SPDX-License-Identifier: Apache-2.0
// `nautilus tune` with several shapes as its users call it, and what other commands make of it.
#if defined(NAUTILUS_SQLITE) && defined(NAUTILUS_EMULATOR)
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

class TuneSeveral : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        (std::filesystem::temp_directory_path() / fmt::format("nautilus-tune-several-{}", getpid()))
            .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::write_file_atomic(path(name), text, &error_)) << error_;
  }
  // Its exit status; what it said is in `said_`.
  int run(const std::string& arguments, const std::string& database = "none") {
    const std::string line = fmt::format("cd {} && NAUTILUS_DB={} {}/nautilus {} 2>&1", folder_,
                                         database, NAUTILUS_TOOL_DIR, arguments);
    FILE* pipe = popen(line.c_str(), "r");
    said_.clear();
    char buffer[4096];
    while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) said_.append(buffer, n);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool says(const std::string& text) const { return said_.find(text) != std::string::npos; }

  const std::string rmsnorm_ = NAUTILUS_SOURCE_DIR "/examples/rmsnorm.naut";
  std::string folder_;
  std::string said_;
  std::string error_;
};

TEST_F(TuneSeveral, BadListsAreWrongUse) {
  write("trace.csv", "M,K,count\n4,64,2\n8\n");
  EXPECT_EQ(run(fmt::format("tune {} --shapes trace.csv --emulate", rmsnorm_)), 2);
  EXPECT_EQ(said_, "nautilus: trace.csv:3: 3 columns are expected (M,K,count), not 1\n");
  EXPECT_EQ(run(fmt::format("tune {} --shapes none.csv --emulate", rmsnorm_)), 2);
  EXPECT_TRUE(says("none.csv")) << said_;
  write("other.jsonl", "{\"M\": 4}\n{\"Q\": 4}\n");
  EXPECT_EQ(run(fmt::format("tune {} --shapes other.jsonl --emulate", rmsnorm_)), 1);
  EXPECT_TRUE(says("Q=4: the program has no size `Q`")) << said_;
}

TEST_F(TuneSeveral, ADryRunSaysWhatAndHowLong) {
  ASSERT_EQ(run(fmt::format("tune {} --shape M=4 --shape M=5 --emulate --dry-run --db none.db",
                            rmsnorm_)),
            0)
      << said_;
  EXPECT_TRUE(says("K=96,M=4: by the cost model, best first\n  the compiler's choice\n")) << said_;
  EXPECT_TRUE(says("K=96,M=5: ")) << said_;
  EXPECT_TRUE(says(" minutes for all of these, 0.7 s for each trial (as on an H200")) << said_;
  EXPECT_TRUE(says("a search stops after 2.0 minutes at the latest")) << said_;
  EXPECT_FALSE(std::filesystem::exists(path("none.db")));
  ASSERT_EQ(run(fmt::format("tune {} --emulate --dry-run --no-database --json", rmsnorm_)), 0);
  EXPECT_TRUE(says("\"event\":\"candidate\"")) << said_;
  EXPECT_TRUE(says("\"minutes\":")) << said_;
}

TEST_F(TuneSeveral, OneScheduleForAllShapes) {
  write("trace.jsonl", "{\"M\": 4, \"weight\": 3}\n{\"M\": 5}\n{\"M\": 5}\n");
  ASSERT_EQ(
      run(fmt::format("tune {} --shapes trace.jsonl --shape M=4 --emulate --trials 4 --db a.db "
                      "-o best.sched --html page.html",
                      rmsnorm_)),
      0)
      << said_;
  EXPECT_TRUE(says("all trials were made: 4 trials in ")) << said_;
  EXPECT_TRUE(says("  K=96,M=4 weight 4: ")) << said_;
  EXPECT_TRUE(says("  K=96,M=5 weight 2: ")) << said_;
  EXPECT_TRUE(std::filesystem::exists(path("page.html")));
  EXPECT_EQ(run(fmt::format("run {} --schedule best.sched --emulate --check", rmsnorm_)), 0)
      << said_;
  ASSERT_EQ(run(fmt::format("tune {} --shape M=4 --shape M=5 --emulate --trials 2 --db a.db --json",
                            rmsnorm_)),
            0)
      << said_;
  EXPECT_TRUE(says("\"event\":\"shape\"")) << said_;
  const auto database = Database::open(path("a.db"), Access::Read, &error_);
  ASSERT_TRUE(database) << error_;
  EXPECT_EQ(database->find({}, &error_)->size(), 6u);  // the second search made others
}

// What a database says of several sizes is used by itself, and said.
TEST_F(TuneSeveral, WinnersOfSeveralSizesAreOnePlan) {
  ASSERT_EQ(run("schedule " + rmsnorm_), 0) << said_;
  const std::string own = said_;
  std::string other = own;
  const std::string line = "registers compute 40";
  ASSERT_NE(other.find(line), std::string::npos) << other;
  other.replace(other.find(line), line.size(), "registers compute 48 tuned");
  const auto database = Database::open(path("a.db"), Access::Write, &error_);
  ASSERT_TRUE(database) << error_;
  const auto add = [&](int64_t m, const std::string& schedule) {
    Trial t;
    const std::string mark = "equations ";
    const size_t hash = own.find(mark) + mark.size();
    t.problem = {
        own.substr(hash, own.find('\n') - hash), {{"M", m}, {"K", 96}}, "sm_90a", "a device"};
    t.program = "rmsnorm";
    t.schedule = schedule;
    t.verdict = Verdict::Timed;
    t.times = {1};
    t.compiler = "0.1.0";
    t.date = "2026-11-17T07:00:00Z";
    EXPECT_TRUE(database->add(t, &error_)) << error_;
  };
  add(40, own);
  const std::string at_one = fmt::format("run {} --emulate --check", rmsnorm_);
  ASSERT_EQ(run(at_one, path("a.db")), 0) << said_;
  EXPECT_TRUE(says("the schedule is the one that was timed on a device")) << said_;
  add(400, other);
  ASSERT_EQ(run(at_one, path("a.db")), 0) << said_;
  EXPECT_TRUE(says("the schedules are the best for 2 sizes that were tuned on a device")) << said_;
  EXPECT_TRUE(says("nearest = 0")) << said_;
  ASSERT_EQ(run(at_one + " --shape M=300", path("a.db")), 0) << said_;
  EXPECT_TRUE(says("nearest = 1")) << said_;
  for (const char* command : {"print --level matile", "compile --emit cuda -o k.cu"}) {
    ASSERT_EQ(run(fmt::format("{} {}", command, rmsnorm_), path("a.db")), 0) << said_;
    EXPECT_TRUE(says("the schedules are the best for 2 sizes")) << command << "\n" << said_;
  }
}

// Not only rows: products, points, and programs with several kernels.
TEST_F(TuneSeveral, APlanChoosesBySizesForEveryForm) {
  struct Case {
    std::string program, from, to;
    std::map<std::string, int64_t> small, large;
  };
  const std::vector<Case> cases = {
      {"gemm",
       "in_flight 1",
       "in_flight 0 tuned",
       {{"K", 64}, {"M", 96}, {"N", 80}},
       {{"K", 64}, {"M", 192}, {"N", 160}}},
      {"cumsum",
       "reads free",
       "reads ordered tuned",
       {{"N", 6}, {"T", 200}},
       {{"N", 60}, {"T", 200}}},
      {"cross_entropy",
       "begin early",
       "begin late tuned",
       {{"C", 100}, {"M", 48}},
       {{"C", 100}, {"M", 480}}},
  };
  for (const Case& c : cases) {
    const std::string file = fmt::format("{}/examples/{}.naut", NAUTILUS_SOURCE_DIR, c.program);
    ASSERT_EQ(run("schedule " + file), 0) << said_;
    const std::string own = said_;
    std::string other = own;
    ASSERT_NE(other.find(c.from), std::string::npos) << other;
    other.replace(other.find(c.from), c.from.size(), c.to);
    const std::string mark = "equations ";
    const size_t hash = own.find(mark) + mark.size();
    const auto database = Database::open(path(c.program + ".db"), Access::Write, &error_);
    ASSERT_TRUE(database) << error_;
    for (const auto& [sizes, schedule] : {std::pair(c.small, own), std::pair(c.large, other)}) {
      Trial t;
      t.problem = {own.substr(hash, own.find('\n') - hash), sizes, "sm_90a", "a device"};
      t.program = c.program;
      t.schedule = schedule;
      t.verdict = Verdict::Timed;
      t.times = {1};
      t.compiler = "0.1.0";
      t.date = "2026-11-17T07:00:00Z";
      ASSERT_TRUE(database->add(t, &error_)) << error_;
    }
    int number = 0;
    for (const auto& sizes : {c.small, c.large}) {
      ASSERT_EQ(run(fmt::format("run {} --emulate --check --shape {}", file, sizes_text(sizes)),
                    path(c.program + ".db")),
                0)
          << said_;
      EXPECT_TRUE(says(fmt::format("nearest = {}", number++))) << said_;
    }
  }
}

}  // namespace
}  // namespace nautilus::tune
#endif
