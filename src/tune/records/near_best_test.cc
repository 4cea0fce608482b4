// SPDX-License-Identifier: Apache-2.0
#include "tune/records/near_best.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "driver/load/load.h"
#include "spec/equations_hash.h"

namespace nautilus::tune {
namespace {

using Sizes = std::map<std::string, int64_t>;

TEST(Distance, IsTheProductOfRatios) {
  EXPECT_EQ(distance({{"M", 64}, {"N", 80}}, {{"M", 128}, {"N", 40}}), 4);
  EXPECT_EQ(distance({{"M", 64}}, {{"M", 64}}), 1);
  EXPECT_EQ(distance({{"M", 0}}, {{"M", 2}}), 2);  // an empty tensor is near a small one
  EXPECT_FALSE(distance({{"M", 64}}, {{"N", 64}}));
  EXPECT_FALSE(distance({{"M", 64}}, {{"M", 64}, {"N", 64}}));
}

TEST(NearBestNote, SaysWhyItIsOrIsNotUsed) {
  NearBest near;
  near.best.machine = "a device";
  near.best.source = "a.db";
  near.best.winner.candidates = 3;
  near.sizes = {{"M", 64}};
  near.expected = 0.96;
  EXPECT_TRUE(near.is_used());
  EXPECT_EQ(note(near),
            "the schedule is the best of 3 that were timed on a device (a.db), for M=64, the "
            "nearest sizes that were tuned; at these it is expected to take 0.96 of the first "
            "schedule's time");
  near.expected = 1.25;
  EXPECT_FALSE(near.is_used());
  EXPECT_EQ(note(near),
            "the first schedule: the best for the nearest tuned sizes, M=64 on a device (a.db), is "
            "expected to take 1.25 times as long at these");
}

#ifdef NAUTILUS_SQLITE
class NearBestTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::temp_directory_path() / fmt::format("nautilus-near-{}.db", ::getpid()))
            .string();
    std::filesystem::remove(path_);
    database_ = Database::open(path_, Access::Write, &error_);
    ASSERT_TRUE(database_) << error_;
  }
  void TearDown() override {
    database_.reset();
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + end);
  }

  // At sizes; its own choice there is in `own_`.
  ir::Program program(const std::string& name, const Sizes& sizes) {
    const std::string file = fmt::format("{}/examples/{}.naut", NAUTILUS_SOURCE_DIR, name);
    const auto loaded =
        driver::load_text(file, base::read_file(file, &error_).value_or(""), {}, unit_);
    EXPECT_TRUE(loaded) << error_;
    ir::Program out = driver::with_hints(*loaded, sizes);
    auto first = driver::first_schedule(out, unit_);
    EXPECT_TRUE(first);
    own_ = driver::complete_kernels(*first, unit_)->schedule;
    return out;
  }

  void add(const ir::Program& program, const Sizes& sizes, const std::string& schedule,
           double time = 1, const std::string& machine = "a device") {
    Trial t;
    t.problem = {spec::equations_hash(program), hinted_sizes(program), "sm_90a", machine};
    for (const auto& [name, size] : sizes) t.problem.sizes.insert_or_assign(name, size);
    t.program = program.name;
    t.schedule = schedule;
    t.verdict = Verdict::Timed;
    t.times = {time};
    t.compiler = NAUTILUS_VERSION;
    t.date = date_now();
    ASSERT_TRUE(database_->add(t, &error_)) << error_;
  }

  std::string changed(const std::string& from, const std::string& to) const {
    std::string out = own_;
    const size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << own_;
    return at == std::string::npos ? out : out.replace(at, from.size(), to);
  }

  driver::Unit unit_;
  std::string own_;
  std::string path_;
  std::unique_ptr<Database> database_;
  std::string error_;
};

TEST_F(NearBestTest, TheNearestThatAppliesIsFound) {
  const ir::Program rows = program("rmsnorm", {{"M", 100}, {"K", 96}});
  const auto near = [&] { return near_best_of(rows, path_, &error_); };
  EXPECT_FALSE(near());
  add(rows, {{"M", 100}}, own_);  // the same sizes are not near ones: best_of has them
  add(rows, {{"M", 500}}, own_);  // too far
  add(rows, {{"M", 120}}, own_, 1, "emulator");
  EXPECT_FALSE(near());
  add(rows, {{"M", 300}}, own_);
  ASSERT_TRUE(near());
  EXPECT_EQ(near()->sizes.at("M"), 300);
  const std::string held = changed("hold row", "hold row tuned");
  add(rows, {{"M", 80}}, held);
  ASSERT_TRUE(near());
  EXPECT_EQ(near()->sizes.at("M"), 80);
  EXPECT_EQ(near()->best.winner.schedule, held);
  EXPECT_EQ(near()->best.source, path_);
  EXPECT_TRUE(near()->is_used());
  // Sizes whose schedules the compiler refuses are passed over.
  add(rows, {{"M", 99}}, "schedule @rmsnorm version 2 equations ab\nkernel nothing rows\n");
  EXPECT_EQ(near()->sizes.at("M"), 80);
  EXPECT_EQ(error_, "");
}

// Tiles that a large product is fast with leave most of the machine idle in a small one.
TEST_F(NearBestTest, TheCostModelHasAVeto) {
  const auto large_tiles = [](const ir::Program& of) {
    return fmt::format(
        "schedule @gemm version 2 equations {}\n"
        "kernel C.sum tile\n"
        "  rows i; stream k; fuse C\n"
        "  tile i 128; tile k 64; tile j 256; groups 2 sharing; cluster 2\n",
        spec::equations_hash(of));
  };
  // Few multiprocessors have such a tile at 512 x 512; at 1024 x 1024 there are four times as many.
  const ir::Program small = program("gemm", {{"M", 512}, {"N", 512}, {"K", 512}});
  add(small, {{"M", 1024}, {"N", 1024}}, large_tiles(small));
  const auto slower = near_best_of(small, path_, &error_);
  ASSERT_TRUE(slower) << error_;
  EXPECT_GT(slower->expected, 1.05);
  EXPECT_FALSE(slower->is_used());
  const auto again = near_best_of(small, path_, &error_);  // from the cache
  ASSERT_TRUE(again);
  EXPECT_DOUBLE_EQ(again->expected, slower->expected);
}

// What the winner gained where it was measured is what it may lose by the model elsewhere.
TEST_F(NearBestTest, TheModelIsCorrectedByTheMeasurement) {
  const ir::Program rows = program("rmsnorm", {{"M", 4000}, {"K", 4096}});
  const std::string tuned = changed("hold row", "hold row tuned");
  add(rows, {{"M", 2000}}, tuned, 9);
  EXPECT_DOUBLE_EQ(near_best_of(rows, path_, &error_)->expected, 1);  // nothing to compare with
  add(rows, {{"M", 2000}}, own_, 10);
  EXPECT_DOUBLE_EQ(near_best_of(rows, path_, &error_)->expected, 0.9);
}
#endif

}  // namespace
}  // namespace nautilus::tune
