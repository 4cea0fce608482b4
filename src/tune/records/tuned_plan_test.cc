// SPDX-License-Identifier: Apache-2.0
#include "tune/records/tuned_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"
#include "schedule/text/sized_schedules.h"
#include "spec/equations_hash.h"

namespace nautilus::tune {
namespace {

constexpr const char* kA = "schedule @p version 2 equations ab\nkernel a rows\n";
constexpr const char* kB = "schedule @p version 2 equations ab\nkernel b rows\n";

TEST(TunedPlanText, SchedulesThatAreEqualAreThereOnce) {
  std::vector<TunedSizes> winners = {
      {{{"M", 8}, {"N", 2}}, kB}, {{{"M", 4}, {"N", 2}}, kA}, {{{"M", 1}, {"N", 2}}, kB}};
  const std::string text = tuned_plan_text(kA, winners);
  EXPECT_EQ(text,
            "schedule @p version 2 equations ab\n"
            "at M, N = 4, 2 within 4 tuned\n"
            "kernel a rows\n"
            "or schedule\n"
            "at M, N = 1, 2 within 4 tuned\n"
            "at M, N = 8, 2 within 4 tuned\n"
            "kernel b rows\n");
  // Whatever the order.
  std::sort(winners.begin(), winners.end(),
            [](const auto& a, const auto& b) { return a.sizes < b.sizes; });
  do {
    EXPECT_EQ(tuned_plan_text(kA, winners), text);
  } while (std::next_permutation(winners.begin(), winners.end(),
                                 [](const auto& a, const auto& b) { return a.sizes < b.sizes; }));
  expr::ExprPool pool;
  const auto parsed = schedule::parse_sized_schedules(text, pool);
  ASSERT_TRUE(parsed) << parsed.rejection().message;
  EXPECT_EQ(schedule::print(*parsed), text);
}

TEST(TunedPlanText, OneScheduleIsNoChoice) {
  EXPECT_EQ(tuned_plan_text(kA, {{{{"M", 8}}, kA}, {{{"M", 4}}, kA}}), kA);
}

#ifdef NAUTILUS_SQLITE
class TunedPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = fmt::format("{}/examples/rmsnorm.naut", NAUTILUS_SOURCE_DIR);
    program_ = driver::load_text(file, base::read_file(file, &error_).value_or(""), {}, unit_);
    ASSERT_TRUE(program_) << error_;
    auto first = driver::first_schedule(*program_, unit_);
    ASSERT_TRUE(first);
    own_ = driver::complete_kernels(*first, unit_)->schedule;
    path_ =
        (std::filesystem::temp_directory_path() / fmt::format("nautilus-plan-{}.db", ::getpid()))
            .string();
    std::filesystem::remove(path_);
    database_ = Database::open(path_, Access::Write, &error_);
    ASSERT_TRUE(database_) << error_;
  }
  void TearDown() override {
    database_.reset();
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + end);
  }

  void add(int64_t m, const std::string& schedule, double time,
           const std::string& machine = "a device") {
    Trial t;
    t.problem = {spec::equations_hash(*program_), {{"M", m}, {"K", 64}}, "sm_90a", machine};
    t.program = program_->name;
    t.schedule = schedule;
    t.verdict = Verdict::Timed;
    t.times = {time};
    t.compiler = NAUTILUS_VERSION;
    t.date = date_now();
    ASSERT_TRUE(database_->add(t, &error_)) << error_;
  }

  // The compiler's choice with another value of a line.
  std::string changed(const std::string& from, const std::string& to) const {
    std::string out = own_;
    const size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << own_;
    return at == std::string::npos ? out : out.replace(at, from.size(), to);
  }

  driver::Unit unit_;
  std::optional<ir::Program> program_;
  std::string own_;
  std::string path_;
  std::unique_ptr<Database> database_;
  std::string error_;
};

TEST_F(TunedPlanTest, WinnersOfSeveralSizesAreOnePlan) {
  add(4, own_, 1);
  EXPECT_FALSE(tuned_plan_of(*program_, path_, &error_));  // a single schedule leaves no choice
  // Neither the emulator's nor another machine's with fewer trials.
  add(64, own_, 1, "emulator");
  add(64, own_, 1, "another device");
  EXPECT_FALSE(tuned_plan_of(*program_, path_, &error_));
  // Schedules that the compiler refuses are left out.
  add(64, "schedule @rmsnorm version 2 equations ab\nkernel nothing rows\n", 1);
  EXPECT_FALSE(tuned_plan_of(*program_, path_, &error_));
  add(128, own_, 1);
  const auto plan = tuned_plan_of(*program_, path_, &error_);
  ASSERT_TRUE(plan) << error_;
  EXPECT_EQ(plan->shapes, 2u);
  EXPECT_EQ(plan->machine, "a device");
  EXPECT_EQ(plan->schedule, own_);  // the same for all
  EXPECT_TRUE(error_.empty()) << error_;
}

TEST_F(TunedPlanTest, APlanHasKernelsOfAllItsSchedules) {
  const std::string held = changed("hold row", "hold row tuned");
  add(4, own_, 1);
  add(512, held, 1);
  add(1024, held, 1);
  const auto plan = tuned_plan_of(*program_, path_, &error_);
  ASSERT_TRUE(plan) << error_;
  EXPECT_EQ(plan->shapes, 3u);
  EXPECT_NE(plan->schedule.find("at K, M = 64, 1024 within 4 tuned\n"), std::string::npos)
      << plan->schedule;
  driver::Unit unit;
  const std::string file = fmt::format("{}/examples/rmsnorm.naut", NAUTILUS_SOURCE_DIR);
  const auto program =
      driver::load_text(file, base::read_file(file, &error_).value_or(""), {}, unit);
  const auto kernels = driver::make_kernels(*program, {.schedule = plan->schedule}, unit, &error_);
  ASSERT_TRUE(kernels) << error_;
  EXPECT_EQ(kernels->schedule, plan->schedule);
}
#endif

}  // namespace
}  // namespace nautilus::tune
