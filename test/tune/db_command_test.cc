// SPDX-License-Identifier: Apache-2.0
// `nautilus db` as its users call it: what it prints, how it ends, what is in the files afterwards.
#ifdef NAUTILUS_SQLITE
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

class DbCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        (std::filesystem::temp_directory_path() / fmt::format("nautilus-db-command-{}", getpid()))
            .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  int db(const std::string& arguments) { return run("db " + arguments); }
  // Its exit status; what it said is in `said_`.
  int run(const std::string& arguments) {
    const std::string line =
        fmt::format("cd {} && {}/nautilus {} 2>&1", folder_, NAUTILUS_TOOL_DIR, arguments);
    FILE* pipe = popen(line.c_str(), "r");
    said_.clear();
    char buffer[4096];
    while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) said_.append(buffer, n);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  static Trial timed(const std::string& schedule, double time) {
    Trial t;
    t.problem = {"00ff", {{"M", 64}}, "sm_90a", "emulator"};
    t.program = "softmax";
    t.schedule = schedule;
    t.verdict = Verdict::Timed;
    t.times = {time};
    t.compiler = "0.1.0";
    t.date = "2026-11-17T07:00:00Z";
    return t;
  }

  void fill(const std::string& name, const std::vector<Trial>& trials) {
    const auto database = Database::open(path(name), Access::Write, &error_);
    ASSERT_TRUE(database) << error_;
    ASSERT_TRUE(database->add(trials, &error_)) << error_;
  }
  std::vector<Trial> trials_of(const std::string& name) {
    const auto database = Database::open(path(name), Access::Read, &error_);
    const auto found = database ? database->find({}, &error_) : std::nullopt;
    EXPECT_TRUE(found) << error_;
    return found.value_or(std::vector<Trial>());
  }

  std::string folder_;
  std::string said_;
  std::string error_;
};

TEST_F(DbCommand, MergeIsImportByAnotherName) {
  fill("a.db", {timed("s", 1), timed("t", 2)});
  fill("b.database", {timed("t", 2), timed("u", 3)});  // a database by its content
  ASSERT_TRUE(base::write_file_atomic(path("c.jsonl"), to_json(timed("v", 4)) + "\n", &error_));
  EXPECT_EQ(db("--db merged.db merge a.db b.database c.jsonl"), 0) << said_;
  EXPECT_EQ(said_, "5 trials read\n");
  EXPECT_EQ(db("--db imported.db import c.jsonl b.database a.db"), 0) << said_;
  EXPECT_EQ(trials_of("merged.db").size(), 4u);
  EXPECT_EQ(trials_of("merged.db"), trials_of("imported.db"));
}

TEST_F(DbCommand, AFlawInOneFileLeavesTheDatabaseAsItWas) {
  fill("all.db", {timed("s", 1)});
  fill("a.db", {timed("t", 2)});
  ASSERT_TRUE(base::write_file_atomic(path("bad.jsonl"), "\n{\"equations\": 1}\n", &error_));
  EXPECT_EQ(db("--db all.db merge a.db bad.jsonl"), 1);
  EXPECT_NE(said_.find("bad.jsonl:2: "), std::string::npos) << said_;
  EXPECT_EQ(trials_of("all.db").size(), 1u);
  EXPECT_EQ(db("--db all.db merge"), 2);  // nothing to merge is wrong use
}

TEST_F(DbCommand, UpgradeSaysTheSchema) {
  fill("a.db", {timed("s", 1)});
  EXPECT_EQ(db("--db a.db upgrade"), 0) << said_;
  EXPECT_EQ(said_, fmt::format("a.db: schema {}\n", Database::kSchema));
  EXPECT_EQ(db("--db none.db upgrade"), 1);
  EXPECT_FALSE(std::filesystem::exists(path("none.db")));
}

// What --json says of commands that change a database, and of failures.
TEST_F(DbCommand, ChangesAreToldAsJson) {
  fill("a.db", {timed("s", 1), timed("t", 2)});
  const auto told = [&](const std::string& arguments, int status) {
    EXPECT_EQ(db(arguments), status) << said_;
    return nlohmann::json::parse(said_, nullptr, false);
  };
  EXPECT_EQ(told("--db b.db merge a.db --json", 0), (nlohmann::json{{"ok", true}, {"read", 2}}));
  EXPECT_EQ(told("--db b.db gc --json", 0), (nlohmann::json{{"ok", true}, {"dropped", 1}}));
  EXPECT_EQ(told("--db b.db upgrade --json", 0)["schema"], Database::kSchema);
  EXPECT_EQ(told("--db b.db export -o b.jsonl --json", 0)["trials"], 1);
  EXPECT_EQ(told("--db b.db html -o b.html --json", 0)["problems"], 1);
  EXPECT_EQ(db("--db b.db html --json"), 2);  // a page is not JSON
  for (const char* command : {"list", "show", "best", "export", "choices", "searches", "upgrade",
                              "verify " NAUTILUS_SOURCE_DIR "/examples/rmsnorm.naut"}) {
    const auto failed = told(fmt::format("--db none.db {} --json", command), 1);
    EXPECT_EQ(failed.value("ok", true), false) << command << ": " << said_;
    EXPECT_NE(failed.value("error", "").find("none.db"), std::string::npos) << said_;
  }
}

TEST_F(DbCommand, EveryCommandNamesAFileThatWasCut) {
  std::vector<Trial> many;
  for (int k = 0; k < 500; ++k) many.push_back(timed(std::string(200, 's') + std::to_string(k), 1));
  fill("cut.db", many);
  std::filesystem::resize_file(path("cut.db"), std::filesystem::file_size(path("cut.db")) / 2);
  const auto before = base::read_file(path("cut.db"), &error_);
  fill("all.db", {timed("s", 1)});
  for (const char* command :
       {"--db cut.db list", "--db cut.db show", "--db cut.db best", "--db cut.db export",
        "--db cut.db gc", "--db cut.db html", "--db cut.db choices", "--db cut.db searches",
        "--db cut.db verify " NAUTILUS_SOURCE_DIR "/examples/rmsnorm.naut",
        "--db all.db merge cut.db"}) {
    EXPECT_EQ(db(command), 1) << command;
    EXPECT_NE(said_.find("cut.db: "), std::string::npos) << command << ": " << said_;
  }
  EXPECT_EQ(base::read_file(path("cut.db"), &error_), before);
  EXPECT_EQ(trials_of("all.db").size(), 1u);
}

// Killed at any time, a merge has added all trials or none, and the next one adds them.
TEST_F(DbCommand, AMergeThatIsKilledIsWholeOrNothing) {
  std::vector<Trial> many;
  for (int k = 0; k < 4000; ++k) many.push_back(timed(std::to_string(k), 1));
  fill("many.db", many);
  fill("all.db", {timed("own", 1)});
  for (const int ms : {5, 20, 40, 80, 160}) {
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
      execl(NAUTILUS_TOOL_DIR "/nautilus", "nautilus", "db", "--db", path("all.db").c_str(),
            "merge", path("many.db").c_str(), nullptr);
      _exit(127);
    }
    usleep(static_cast<useconds_t>(ms) * 1000);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const size_t count = trials_of("all.db").size();
    EXPECT_TRUE(count == 1 || count == many.size() + 1) << count;
  }
  EXPECT_EQ(db("--db all.db merge many.db"), 0) << said_;
  EXPECT_EQ(trials_of("all.db").size(), many.size() + 1);
}

// Trials that another process adds meanwhile are there afterwards; the winner always is.
TEST_F(DbCommand, GarbageIsCollectedWhileOthersAdd) {
  fill("a.db", {timed("fast", 1), timed("slow", 2)});
  const pid_t writer = fork();
  if (writer == 0) {
    std::string error;
    const auto database = Database::open(path("a.db"), Access::Write, &error);
    for (int k = 0; database && k < 200; ++k) {
      if (!database->add(timed("slow" + std::to_string(k), 3), &error)) _exit(1);
    }
    _exit(database ? 0 : 1);
  }
  for (int k = 0; k < 5; ++k) EXPECT_EQ(db("--db a.db gc"), 0) << said_;
  int status = 0;
  waitpid(writer, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(db("--db a.db gc"), 0) << said_;
  const auto left = trials_of("a.db");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].schedule, "fast");
}

#ifdef NAUTILUS_EMULATOR
// What was tuned is confirmed by the compiler that tuned it; a winner that only a record knows is
// refused; other problems are named.
TEST_F(DbCommand, VerifyMeasuresAgain) {
  const std::string rmsnorm = NAUTILUS_SOURCE_DIR "/examples/rmsnorm.naut";
  const std::string softmax = NAUTILUS_SOURCE_DIR "/examples/softmax.naut";
  ASSERT_EQ(run(fmt::format("tune {} --shape M=5 --emulate --trials 2 --db tuned.db", rmsnorm)), 0)
      << said_;
  auto before = trials_of("tuned.db");
  for (Trial& t : before) t.compiler = "0.0.1";  // of another version
  fill("a.db", before);
  ASSERT_EQ(db("--db a.db verify " + rmsnorm), 0) << said_;
  EXPECT_EQ(said_.find("confirmed: rmsnorm K=96,M=5 sm_90a emulator\n  the winner "), 0u) << said_;
  EXPECT_NE(said_.find("\n1 confirmed\n"), std::string::npos) << said_;
  EXPECT_GT(trials_of("a.db").size(), before.size());

  EXPECT_EQ(db("--db a.db verify " + softmax), 1);
  EXPECT_NE(said_.find("not measured: 1 (of none of the programs)\n"), std::string::npos) << said_;
  EXPECT_EQ(db(fmt::format("--db a.db verify {} --shape M=7", rmsnorm)), 2);
  EXPECT_NE(said_.find("--shape M=7: "), std::string::npos) << said_;
  EXPECT_EQ(db("--db none.db verify " + rmsnorm), 1);
  EXPECT_FALSE(std::filesystem::exists(path("none.db")));

  Trial old = before[0];
  old.schedule = "schedule @rmsnorm\n  a line of another time\n";
  old.verdict = Verdict::Timed;
  old.reason = "";
  old.times = {1};
  fill("a.db", {old});
  EXPECT_EQ(db("--db a.db verify --json " + rmsnorm), 1);
  EXPECT_NE(said_.find("\"standing\":\"refused\""), std::string::npos) << said_;
  EXPECT_NE(said_.find("\"standings\":{\"refused\":1}"), std::string::npos) << said_;
}
#endif

}  // namespace
}  // namespace nautilus::tune
#endif
