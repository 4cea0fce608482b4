// SPDX-License-Identifier: Apache-2.0
#include "tune/work/work_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "tune/work/budget.h"

namespace nautilus::tune {
namespace {

class WorkListTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / fmt::format("nautilus-work-{}", getpid()))
                  .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::optional<WorkList> list(const std::string& text) {
    const std::string path = folder_ + "/list";
    EXPECT_TRUE(base::write_file_atomic(path, text, &error_)) << error_;
    error_.clear();
    return WorkList::read(path, &error_);
  }
  // As if the worker had last shown itself so long ago.
  static void age(const Claim& claim, int seconds) {
    struct stat status {};
    ASSERT_EQ(stat(claim.path.c_str(), &status), 0);
    timespec times[2] = {status.st_atim, status.st_mtim};
    times[1].tv_sec -= seconds;
    ASSERT_EQ(utimensat(AT_FDCWD, claim.path.c_str(), times, 0), 0);
  }

  std::string folder_;
  std::string error_;
};

TEST_F(WorkListTest, LinesAreJobs) {
  const auto l = list(
      "# what is tuned tonight\n"
      "gemm.naut M=64,N=80 2m\n"
      "\n"
      "  rmsnorm.naut\t# at its hints\n"
      "softmax.naut 90s\r\n"
      "gemm.naut M=64,N=96");
  ASSERT_TRUE(l) << error_;
  ASSERT_EQ(l->jobs().size(), 4u);
  const Job& first = l->jobs()[0];
  EXPECT_EQ(first.line, 2);
  EXPECT_EQ(first.file, "gemm.naut");
  EXPECT_EQ(first.sizes, (std::map<std::string, int64_t>{{"M", 64}, {"N", 80}}));
  EXPECT_EQ(first.seconds, 120);
  EXPECT_EQ(l->jobs()[1].text(), "rmsnorm.naut");
  EXPECT_FALSE(l->jobs()[1].seconds);
  EXPECT_EQ(l->jobs()[2].seconds, 90);
  EXPECT_EQ(l->jobs()[3].text(), "gemm.naut M=64,N=96");
  std::set<std::string> keys;
  for (const Job& job : l->jobs()) keys.insert(job.key());
  EXPECT_EQ(keys.size(), 4u);
}

TEST_F(WorkListTest, OtherLinesAreNamed) {
  const auto fault = [&](const std::string& line) {
    EXPECT_FALSE(list("a.naut\n" + line)) << line;
    EXPECT_EQ(error_.find(folder_ + "/list:2: "), 0u) << error_;
    return error_.substr(error_.find(":2: ") + 4);
  };
  EXPECT_EQ(fault("b.naut soon"), "`soon`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("b.naut 2m M=64"), "`M=64`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("b.naut M=x"), "`M=x`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("b.naut M=1,M=2"), "`M=1,M=2`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("b.naut M=1,"), "`M=1,`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("b.naut M=-1"), "`M=-1`: a job is FILE [M=64,N=80] [2m]");
  EXPECT_EQ(fault("a.naut 3m"), "the job of line 1 again");
  EXPECT_FALSE(WorkList::read(folder_ + "/none", &error_));
}

TEST_F(WorkListTest, AJobIsTakenOnce) {
  const auto l = list("a.naut\nb.naut M=2\n");
  ASSERT_TRUE(l) << error_;
  const Job& a = l->jobs()[0];
  EXPECT_EQ(l->state(a, &error_), JobState::Free);
  ASSERT_TRUE(l->take(a, false, &error_)) << error_;
  EXPECT_EQ(l->state(a, &error_), JobState::Held);
  EXPECT_FALSE(l->take(a, false, &error_));
  EXPECT_FALSE(l->take(a, true, &error_));  // it is held
  EXPECT_EQ(l->state(l->jobs()[1], &error_), JobState::Free);
  ASSERT_TRUE(l->finish(a, "{}\n", &error_)) << error_;
  EXPECT_EQ(l->state(a, &error_), JobState::Done);
  EXPECT_FALSE(l->take(a, true, &error_));
  EXPECT_EQ(error_, "");
  // Other lines around it: the same job.
  const auto longer = list("c.naut\n# first\na.naut 3m\n");
  EXPECT_EQ(longer->state(longer->jobs()[1], &error_), JobState::Done);
}

TEST_F(WorkListTest, WhoRetriesTakesWhatIsLostOrFailed) {
  auto l = list("a.naut\n");
  ASSERT_TRUE(l) << error_;
  l->set_lease(100);
  const Job& a = l->jobs()[0];
  const auto first = l->take(a, true, &error_);
  ASSERT_TRUE(first) << error_;
  age(*first, 50);
  EXPECT_EQ(l->state(a, &error_), JobState::Held);
  EXPECT_FALSE(l->take(a, true, &error_));
  age(*first, 100);
  EXPECT_EQ(l->state(a, &error_), JobState::Lost);
  EXPECT_FALSE(l->take(a, false, &error_));
  const auto second = l->take(a, true, &error_);
  ASSERT_TRUE(second) << error_;
  EXPECT_EQ(l->state(a, &error_), JobState::Held);
  EXPECT_FALSE(l->take(a, true, &error_));
  ASSERT_TRUE(l->give_back(*second, "it was stopped", &error_)) << error_;
  EXPECT_EQ(l->state(a, &error_), JobState::Failed);
  EXPECT_FALSE(l->take(a, false, &error_));
  ASSERT_TRUE(l->take(a, true, &error_)) << error_;
  EXPECT_EQ(l->state(a, &error_), JobState::Held);
}

TEST_F(WorkListTest, AClaimThatIsTouchedIsHeld) {
  auto l = list("a.naut\n");
  ASSERT_TRUE(l) << error_;
  l->set_lease(1000);
  const auto claim = l->take(l->jobs()[0], false, &error_);
  ASSERT_TRUE(claim) << error_;
  age(*claim, 5000);
  ASSERT_EQ(l->state(l->jobs()[0], &error_), JobState::Lost);
  const Heartbeat heartbeat(*claim, 0.01);
  while (l->state(l->jobs()[0], &error_) != JobState::Held) usleep(1000);
}

// All processes try to claim all jobs, at first free ones, then lost ones: each job is claimed
// once.
TEST_F(WorkListTest, ProcessesTakeEveryJobOnce) {
  constexpr int kJobs = 200;
  constexpr int kProcesses = 4;
  std::string text;
  for (int k = 0; k < kJobs; ++k) text += fmt::format("a.naut M={}\n", k);
  auto l = list(text);
  ASSERT_TRUE(l) << error_;
  for (const bool retries : {false, true}) {
    if (retries) {
      for (const Job& job : l->jobs())
        age({fmt::format("{}/list.claims/{}.1", folder_, job.key())}, 10'000);
    }
    int taken[2];
    int start[2];
    ASSERT_EQ(pipe(taken), 0);
    ASSERT_EQ(pipe(start), 0);
    std::vector<pid_t> children;
    for (int p = 0; p < kProcesses; ++p) {
      const pid_t pid = fork();
      if (pid == 0) {
        close(start[1]);
        char byte = 0;
        if (read(start[0], &byte, 1) != 0) _exit(2);  // until all have been started
        std::string error;
        for (const Job& job : l->jobs()) {
          const auto claim = l->take(job, retries, &error);
          if (!error.empty()) _exit(1);
          if (claim && write(taken[1], &job.line, sizeof job.line) != sizeof job.line) _exit(1);
        }
        _exit(0);
      }
      children.push_back(pid);
    }
    for (const int end : {start[0], start[1], taken[1]}) close(end);
    std::multiset<int> lines;
    int line = 0;
    while (read(taken[0], &line, sizeof line) == sizeof line) lines.insert(line);
    close(taken[0]);
    for (const pid_t pid : children) {
      int status = 0;
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(lines.size(), static_cast<size_t>(kJobs));
    EXPECT_EQ(std::set<int>(lines.begin(), lines.end()).size(), static_cast<size_t>(kJobs));
  }
}

TEST(Budget, TimesAreSeconds) {
  EXPECT_EQ(seconds_of("90"), 90);
  EXPECT_EQ(seconds_of("1.5s"), 1.5);
  EXPECT_EQ(seconds_of("2m"), 120);
  EXPECT_EQ(seconds_of("1h"), 3600);
  for (const char* none : {"", "m", "2x", "-1s"}) EXPECT_FALSE(seconds_of(none)) << none;
}

}  // namespace
}  // namespace nautilus::tune
