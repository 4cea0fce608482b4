// SPDX-License-Identifier: Apache-2.0
// Databases of other versions, and disks that are full. There is one version so far: the next one
// is made up here.
#ifdef NAUTILUS_SQLITE
#include "tune/records/schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

// A file of version 1 as it was released. Later versions must read it: never changed.
constexpr const char* kVersion1 = R"(
CREATE TABLE trials(identity TEXT PRIMARY KEY, equations TEXT NOT NULL, sizes TEXT NOT NULL,
 target TEXT NOT NULL, machine TEXT NOT NULL, trial TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX by_problem ON trials(equations, sizes, target, machine);
PRAGMA user_version = 1;
INSERT INTO trials VALUES('1e2b', '00ff', 'M=64,N=80', 'sm_90a', 'emulator',
 '{"compiler":"0.1.0","date":"2026-11-17T07:00:00Z","equations":"00ff","machine":"emulator",
   "program":"softmax","schedule":"kernel Y rows\n","sizes":{"M":64,"N":80},"target":"sm_90a",
   "times":[1234.0],"verdict":"timed"}');
INSERT INTO trials VALUES('77aa', '00ff', 'M=64,N=80', 'sm_90a', 'emulator',
 '{"compiler":"0.1.0","date":"2026-11-17T07:00:01Z","equations":"00ff","machine":"emulator",
   "program":"softmax","reason":"line 1: no","schedule":"kernel Z rows\n",
   "sizes":{"M":64,"N":80},"target":"sm_90a","verdict":"refused"}');
)";

// A hypothetical next version: a table of migrations, and a column.
constexpr const char* kAddDate =
    "CREATE TABLE migrations(step INTEGER); INSERT INTO migrations VALUES(2);"
    "ALTER TABLE trials ADD COLUMN date TEXT;"
    "UPDATE trials SET date = json_extract(trial, '$.date');";

std::vector<SchemaStep> present_and(std::vector<SchemaStep> more) {
  std::vector<SchemaStep> out(schema_steps().begin(), schema_steps().end());
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

class SchemaTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / fmt::format("nautilus-schema-{}", getpid()))
                  .string();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/a.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Statements in a connection of their own; the first number of the last row, or -1.
  int64_t sql(const char* text) {
    sqlite3* db = nullptr;
    int64_t out = -1;
    const auto keep = [](void* to, int, char** values, char**) {
      *static_cast<int64_t*>(to) = std::strtoll(values[0] ? values[0] : "", nullptr, 10);
      return 0;
    };
    char* message = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text, keep, &out, &message), SQLITE_OK) << message;
    sqlite3_close(db);
    return out;
  }
  std::unique_ptr<Database> open(Access access, const std::vector<SchemaStep>& steps) {
    return Database::open(path_, access, steps, &error_);
  }
  std::vector<Trial> all(const Database& db) {
    auto found = db.find({}, &error_);
    EXPECT_TRUE(found) << error_;
    return found.value_or(std::vector<Trial>());
  }

  const std::vector<SchemaStep> next_ = present_and({{"a column of dates", kAddDate}});
  std::string folder_;
  std::string path_;
  std::string error_;
};

TEST_F(SchemaTest, Version1IsReadForEver) {
  sql(kVersion1);
  const auto db = Database::open(path_, Access::Write, &error_);
  ASSERT_TRUE(db) << error_;
  const auto trials = all(*db);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].schedule, "kernel Y rows\n");
  EXPECT_EQ(trials[0].times, std::vector<double>{1234});
  EXPECT_EQ(trials[1].verdict, Verdict::Refused);
  EXPECT_EQ(trials[1].problem.sizes, (std::map<std::string, int64_t>{{"M", 64}, {"N", 80}}));
  EXPECT_EQ(sql("PRAGMA user_version"), Database::kSchema);
}

TEST_F(SchemaTest, AnOlderFileIsBroughtToTheNewestWithNothingLost) {
  sql(kVersion1);
  std::vector<Trial> before;
  {
    const auto old = Database::open(path_, Access::Read, &error_);
    ASSERT_TRUE(old) << error_;
    before = all(*old);
  }
  EXPECT_FALSE(open(Access::Read, next_));
  EXPECT_EQ(error_, fmt::format("{0}: its schema is 1, and this version of nautilus reads 2; "
                                "`nautilus db --db {0} upgrade` brings it there",
                                path_));
  EXPECT_EQ(sql("PRAGMA user_version"), 1);
  {
    const auto db = open(Access::Write, next_);
    ASSERT_TRUE(db) << error_;
    EXPECT_EQ(all(*db), before);
    Trial more = before[0];
    more.schedule = "another";
    EXPECT_TRUE(db->add(more, &error_)) << error_;
  }
  EXPECT_EQ(sql("PRAGMA user_version"), 2);
  EXPECT_EQ(sql("SELECT count(*) FROM trials WHERE date LIKE '2026-11-17T07:00:0_Z'"), 2);
  ASSERT_TRUE(open(Access::Write, next_)) << error_;  // there is nothing left to do
  EXPECT_EQ(sql("SELECT count(*) FROM migrations"), 1);
  const auto db = open(Access::Read, next_);
  ASSERT_TRUE(db) << error_;
  EXPECT_EQ(all(*db).size(), 3u);
}

TEST_F(SchemaTest, ANewFileTakesAllSteps) {
  ASSERT_TRUE(open(Access::Write, next_)) << error_;
  EXPECT_EQ(sql("PRAGMA user_version"), 2);
  EXPECT_EQ(sql("SELECT count(date) FROM trials"), 0);
}

TEST_F(SchemaTest, ANewerFileIsRefusedAndStaysAsItIs) {
  sql(kVersion1);
  ASSERT_TRUE(open(Access::Write, next_)) << error_;
  const auto before = base::read_file(path_, &error_);
  for (const Access access : {Access::Read, Access::Write}) {
    EXPECT_FALSE(Database::open(path_, access, &error_));
    EXPECT_EQ(error_.find(path_ + ": its schema is 2, and this version of nautilus knows them up "
                                  "to 1; a newer one reads it"),
              0u)
        << error_;
  }
  EXPECT_EQ(base::read_file(path_, &error_), before);
}

TEST_F(SchemaTest, AStepThatFailsIsUndoneWithThoseBeforeIt) {
  sql(kVersion1);
  const auto steps =
      present_and({{"a column of dates", kAddDate},
                   {"a column of clocks",
                    "ALTER TABLE trials ADD COLUMN clocks TEXT; UPDATE no_such_table SET x = 1;"}});
  EXPECT_FALSE(open(Access::Write, steps));
  EXPECT_EQ(error_, path_ +
                        ": the step from schema 2 to 3 (a column of clocks) failed: no such table: "
                        "no_such_table; nothing was changed");
  EXPECT_EQ(sql("PRAGMA user_version"), 1);
  EXPECT_EQ(sql("SELECT count(*) FROM pragma_table_info('trials')"), 6);
  EXPECT_EQ(sql("SELECT count(*) FROM sqlite_master WHERE name = 'migrations'"), 0);
  const auto db = Database::open(path_, Access::Write, &error_);
  ASSERT_TRUE(db) << error_;
  EXPECT_EQ(all(*db).size(), 2u);
}

// Processes that open a file at the same time: `is_old` as version 1 or not there yet.
class SchemaRace : public SchemaTest, public testing::WithParamInterface<bool> {};

TEST_P(SchemaRace, OneOfThemTakesTheSteps) {
  constexpr int kProcesses = 4;
  constexpr int kRounds = 10;
  const bool is_old = GetParam();
  for (int round = 0; round < kRounds; ++round) {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + end);
    if (is_old) sql(kVersion1);
    int start[2];
    ASSERT_EQ(pipe(start), 0);
    std::vector<pid_t> children;
    for (int k = 0; k < kProcesses; ++k) {
      const pid_t pid = fork();
      if (pid == 0) {
        close(start[1]);
        char byte = 0;
        if (read(start[0], &byte, 1) != 0) _exit(2);  // until all have been started
        std::string error;
        const auto db = Database::open(path_, Access::Write, next_, &error);
        if (!db) fmt::print(stderr, "{}\n", error);
        Trial trial;
        trial.schedule = fmt::format("of process {}", k);
        trial.verdict = Verdict::Hung;
        _exit(db && db->add(trial, &error) ? 0 : 1);
      }
      children.push_back(pid);
    }
    close(start[0]);
    close(start[1]);
    for (const pid_t pid : children) {
      int status = 0;
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(sql("PRAGMA user_version"), 2);
    EXPECT_EQ(sql("SELECT count(*) FROM migrations"), 1);
    EXPECT_EQ(sql("SELECT count(*) FROM trials"), kProcesses + (is_old ? 2 : 0));
  }
}
INSTANTIATE_TEST_SUITE_P(Files, SchemaRace, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "Older" : "New"; });

// A disk with room for this many more bytes: SQLite's system calls go through here.
class FullDisk {
 public:
  explicit FullDisk(int64_t bytes) {
    left_ = bytes;
    for (const char* name : {"write", "pwrite", "pwrite64"}) {
      const auto real = vfs()->xGetSystemCall(vfs(), name);
      if (real) set(name, reinterpret_cast<sqlite3_syscall_ptr>(call_of(name)));
    }
  }
  ~FullDisk() {
    for (const char* name : {"write", "pwrite", "pwrite64"}) set(name, nullptr);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  static sqlite3_vfs* vfs() { return sqlite3_vfs_find(nullptr); }
  static void set(const char* name, sqlite3_syscall_ptr call) {
    vfs()->xSetSystemCall(vfs(), name, call);
  }
  static sqlite3_syscall_ptr call_of(std::string_view name) {
    return name == "write" ? reinterpret_cast<sqlite3_syscall_ptr>(&limited_write)
                           : reinterpret_cast<sqlite3_syscall_ptr>(&limited_pwrite);
  }
  // As a disk does it: what fits is written, the rest is not.
  static ssize_t allowed(size_t size) {
    if (left_ <= 0) {
      errno = ENOSPC;
      return -1;
    }
    const int64_t part = std::min(left_, static_cast<int64_t>(size));
    left_ -= part;
    return part;
  }
  static ssize_t limited_write(int file, const void* from, size_t size) {
    const ssize_t part = allowed(size);
    return part < 0 ? part : write(file, from, static_cast<size_t>(part));
  }
  static ssize_t limited_pwrite(int file, const void* from, size_t size, off_t at) {
    const ssize_t part = allowed(size);
    return part < 0 ? part : pwrite(file, from, static_cast<size_t>(part), at);
  }

  static inline int64_t left_ = 0;
};

// Wherever in a transaction the disk is full: the error says so, and what was there is there.
TEST_F(SchemaTest, AFullDiskLosesNothing) {
  Trial trial;
  trial.program = "softmax";
  trial.verdict = Verdict::Refused;
  trial.schedule = std::string(20'000, 's');  // several pages
  int refused = 0;
  for (const int64_t bytes : {0, 1, 100, 4'000, 10'000, 20'000, 24'000, 30'000, 1'000'000}) {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + end);
    Trial first = trial;
    first.reason = "before";
    auto db = Database::open(path_, Access::Write, &error_);
    ASSERT_TRUE(db) << error_;
    ASSERT_TRUE(db->add(first, &error_)) << error_;
    bool is_added = false;
    {
      const FullDisk disk(bytes);
      std::string why;
      is_added = db->add(trial, &why);
      if (!is_added) {
        ++refused;
        EXPECT_EQ(why, path_ + ": database or disk is full; the trial was not added");
      }
      db.reset();  // the process ends while the disk is still full
    }
    db = Database::open(path_, Access::Write, &error_);
    ASSERT_TRUE(db) << error_;
    EXPECT_EQ(all(*db).size(), is_added ? 2u : 1u) << bytes;
    EXPECT_TRUE(db->add(trial, &error_)) << error_;  // there is room again
    EXPECT_EQ(all(*db).size(), 2u);
  }
  EXPECT_GE(refused, 5);  // the limits do what they say
  EXPECT_LT(refused, 9);
}

}  // namespace
}  // namespace nautilus::tune
#endif
