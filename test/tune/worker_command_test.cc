// SPDX-License-Identifier: Apache-2.0
// `nautilus worker`, several of them on one list, ended by themselves and by others.
#if defined(NAUTILUS_SQLITE) && defined(NAUTILUS_EMULATOR)
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

class WorkerCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / fmt::format("nautilus-worker-{}", getpid()))
                  .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string example(const std::string& name) {
    return fmt::format("{}/examples/{}.naut", NAUTILUS_SOURCE_DIR, name);
  }
  void write_list(const std::string& text) {
    ASSERT_TRUE(base::write_file_atomic(path("list"), text, &error_)) << error_;
  }

  // A worker of the list in the emulator, with what it says in `database`.log.
  pid_t start(const std::string& database, std::vector<std::string> more) {
    std::vector<std::string> words = {NAUTILUS_TOOL_DIR "/nautilus",
                                      "worker",
                                      "--list",
                                      path("list"),
                                      "--db",
                                      path(database),
                                      "--emulate"};
    words.insert(words.end(), more.begin(), more.end());
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int log = open(path(database + ".log").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  static int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
  std::string log_of(const std::string& database) {
    return base::read_file(path(database + ".log"), &error_).value_or("");
  }
  // The first words of --status.
  std::vector<std::string> states(const std::string& lease) {
    const std::string line = fmt::format(
        NAUTILUS_TOOL_DIR "/nautilus worker --list {} --status --lease {}", path("list"), lease);
    FILE* pipe = popen(line.c_str(), "r");
    std::vector<std::string> out;
    char row[4096];
    while (fgets(row, sizeof row, pipe))
      out.push_back(std::string(row).substr(0, std::string(row).find(' ')));
    EXPECT_EQ(pclose(pipe), 0);
    return out;
  }
  std::vector<Trial> trials_of(const std::string& name) {
    std::string ignored;  // may not be there yet
    const auto database = Database::open(path(name), Access::Read, &ignored);
    const auto found = database ? database->find({}, &ignored) : std::nullopt;
    return found.value_or(std::vector<Trial>());
  }

  std::string folder_;
  std::string error_;
};

using States = std::vector<std::string>;

TEST_F(WorkerCommand, TwoWorkersShareAList) {
  write_list(
      fmt::format("{0} M=2\n{0} M=3  # another size\n{0} M=4\n{0} M=5\n", example("rmsnorm")));
  EXPECT_EQ(states("300s"), (States{"free", "free", "free", "free"}));
  const pid_t a = start("a.db", {"--trials", "1"});
  const pid_t b = start("b.db", {"--trials", "1"});
  EXPECT_EQ(end_of(a), 0) << log_of("a.db");
  EXPECT_EQ(end_of(b), 0) << log_of("b.db");
  EXPECT_EQ(states("300s"), (States{"done", "done", "done", "done"}));
  std::multiset<int64_t> rows;  // one trial of each job, in one of the databases
  for (const char* name : {"a.db", "b.db"}) {
    for (const Trial& t : trials_of(name)) rows.insert(t.problem.sizes.at("M"));
  }
  EXPECT_EQ(rows, (std::multiset<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(end_of(start("c.db", {"--retry"})), 0) << log_of("c.db");
  EXPECT_EQ(log_of("c.db"), "0 jobs done, 0 failed\n");
}

TEST_F(WorkerCommand, PartsNeedNoSharedFolder) {
  write_list(fmt::format("{0} M=2\n{0} M=3\n{0} M=4\n", example("rmsnorm")));
  EXPECT_EQ(end_of(start("a.db", {"--trials", "1", "--part", "1/2"})), 0) << log_of("a.db");
  EXPECT_EQ(states("300s"), (States{"done", "free", "done"}));
  EXPECT_EQ(WEXITSTATUS(end_of(start("b.db", {"--part", "3/2"}))), 2);
}

TEST_F(WorkerCommand, AJobThatFailsDoesNotStopTheOthers) {
  write_list(
      fmt::format("{} Q=3\n/no/such.naut\n{} M=2\n", example("rmsnorm"), example("rmsnorm")));
  EXPECT_EQ(WEXITSTATUS(end_of(start("a.db", {"--trials", "1"}))), 1);
  EXPECT_EQ(states("300s"), (States{"failed", "failed", "done"}));
  EXPECT_NE(log_of("a.db").find("the program has no size `Q`"), std::string::npos);
  EXPECT_NE(log_of("a.db").find("/no/such.naut"), std::string::npos);
  EXPECT_NE(log_of("a.db").find("1 jobs done, 2 failed\n"), std::string::npos);
}

TEST_F(WorkerCommand, EventsAreLinesOfJson) {
  write_list(fmt::format("{} M=2\n/no/such.naut\n", example("rmsnorm")));
  EXPECT_EQ(WEXITSTATUS(end_of(start("a.db", {"--trials", "1", "--json"}))), 1);
  std::vector<std::string> events;
  std::istringstream log(log_of("a.db"));
  for (std::string line; std::getline(log, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (j.is_object()) events.push_back(j.value("event", ""));  // others are on standard error
  }
  EXPECT_EQ(events, (States{"begin", "done", "begin", "failed", "end"})) << log_of("a.db");
}

// By force it loses the trial that ran; others wait until it was not seen for the lease.
TEST_F(WorkerCommand, AWorkerMayBeKilled) {
  write_list(example("gemm") + " 1h\n");
  const pid_t a = start("a.db", {});
  while (trials_of("a.db").size() < 2 && waitpid(a, nullptr, WNOHANG) == 0) usleep(10'000);
  EXPECT_EQ(states("300s"), States{"held"});
  ASSERT_EQ(kill(a, SIGKILL), 0);
  EXPECT_TRUE(WIFSIGNALED(end_of(a)));
  EXPECT_GE(trials_of("a.db").size(), 2u);
  EXPECT_EQ(end_of(start("b.db", {"--retry"})), 0);
  EXPECT_EQ(log_of("b.db"), "0 jobs done, 0 failed\n");  // it may still be there
  while (states("0.2s") != States{"lost"}) usleep(10'000);
  EXPECT_EQ(end_of(start("c.db", {"--retry", "--lease", "0.2s", "--trials", "1"})), 0)
      << log_of("c.db");
  EXPECT_EQ(states("300s"), States{"done"});
}

TEST_F(WorkerCommand, AWorkerThatIsAskedToStopGivesItsJobBack) {
  write_list(example("gemm") + " 1h\n" + example("rmsnorm") + "\n");
  const pid_t a = start("a.db", {});
  while (trials_of("a.db").empty() && waitpid(a, nullptr, WNOHANG) == 0) usleep(10'000);
  ASSERT_EQ(kill(a, SIGTERM), 0);
  EXPECT_EQ(WEXITSTATUS(end_of(a)), 1);
  EXPECT_EQ(states("300s"), (States{"failed", "free"}));
  EXPECT_EQ(end_of(start("a.db", {"--retry", "--trials", "1"})), 0) << log_of("a.db");
  EXPECT_EQ(states("300s"), (States{"done", "done"}));
}

}  // namespace
}  // namespace nautilus::tune
#endif
