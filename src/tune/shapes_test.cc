// SPDX-License-Identifier: Apache-2.0
// Searches of several shapes in the emulator.
#ifdef NAUTILUS_EMULATOR
#include "tune/shapes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "schedule/text/sized_schedules.h"

namespace nautilus::tune {
namespace {

using Sizes = std::map<std::string, int64_t>;

class ShapesTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fmt::format("{}/examples/rmsnorm.naut", NAUTILUS_SOURCE_DIR);
    text_ = base::read_file(path_, &error_).value_or("");
    ASSERT_FALSE(text_.empty()) << error_;
    options_.seconds = 600;
    options_.trials = 6;
  }

  ShapeSubject shape(const Sizes& sizes, double weight = 1) const {
    ShapeSubject out;
    out.subject.path = path_;
    out.subject.text = text_;
    out.subject.sizes = sizes;
    out.subject.emulates = true;
    out.weight = weight;
    out.worker = {std::string(NAUTILUS_TOOL_DIR) + "/nautilus",
                  "propose",
                  path_,
                  "--emulate",
                  "--shape",
                  sizes_text(sizes)};
    return out;
  }

  std::optional<ShapesResult> run(const std::vector<ShapeSubject>& shapes,
                                  Database* database = nullptr) {
    told_.clear();
    return tune_shapes(
        shapes, options_,
        {database, [&](const Progress& p) { told_.push_back(*p.trial); }, [] { return false; }},
        &error_);
  }

  std::string path_;
  std::string text_;
  TuneOptions options_;
  std::vector<Trial> told_;
  std::string error_;
};

TEST_F(ShapesTest, WeightsDecideTheShares) {
  const Sizes small = {{"M", 4}};
  const Sizes large = {{"M", 5}};
  options_.trials = 8;
  const auto even = run({shape(small), shape(large)});
  ASSERT_TRUE(even) << error_;
  EXPECT_EQ(even->trials, 8);
  EXPECT_EQ(even->ended, "all trials were made");
  ASSERT_EQ(even->shapes.size(), 2u);
  // The compiler's own choices come first, of all shapes.
  EXPECT_NE(told_[0].problem.sizes, told_[1].problem.sizes);
  const auto heavy = run({shape(small, 1000), shape(large)});
  ASSERT_TRUE(heavy) << error_;
  EXPECT_GE(heavy->shapes[0].tuned.trials, 6);
  EXPECT_LE(heavy->shapes[1].tuned.trials, 2);
  EXPECT_GT(even->shapes[1].tuned.trials, 1);
  const auto other = run({shape(small), shape(large, 1000)});
  ASSERT_TRUE(other) << error_;
  EXPECT_LE(other->shapes[0].tuned.trials, 2);
  EXPECT_GE(other->shapes[1].tuned.trials, 6);
}

TEST_F(ShapesTest, TheOrderOfShapesDoesNotMatter) {
  const std::vector<ShapeSubject> shapes = {shape({{"M", 4}}, 2), shape({{"M", 6}}),
                                            shape({{"M", 4}, {"K", 64}})};
  const auto one = run(shapes);
  ASSERT_TRUE(one) << error_;
  const std::vector<Trial> before = told_;
  // The first shape is given in two halves.
  const auto other = run({shapes[2], shape({{"M", 4}}), shapes[1], shape({{"M", 4}})});
  ASSERT_TRUE(other) << error_;
  EXPECT_EQ(one->schedule, other->schedule);
  EXPECT_EQ(one->best, other->best);
  ASSERT_EQ(before.size(), told_.size());
  for (size_t k = 0; k < told_.size(); ++k) {
    EXPECT_EQ(before[k].problem, told_[k].problem);
    EXPECT_EQ(before[k].schedule, told_[k].schedule);
    EXPECT_EQ(before[k].times, told_[k].times);
  }
}

TEST_F(ShapesTest, SizesThatTheProgramHasNotAreNamed) {
  EXPECT_FALSE(run({shape({{"M", 4}}), shape({{"Q", 4}})}));
  EXPECT_EQ(error_, "Q=4: the program has no size `Q`");
}

#ifdef NAUTILUS_SQLITE
TEST_F(ShapesTest, ASearchGoesOnFromWhatIsThere) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("nautilus-shapes-{}.db", ::getpid()))
          .string();
  std::filesystem::remove(path);
  const auto db = Database::open(path, Access::Write, &error_);
  ASSERT_TRUE(db) << error_;
  const std::vector<ShapeSubject> shapes = {shape({{"M", 4}}), shape({{"M", 6}})};
  ASSERT_TRUE(run(shapes, db.get())) << error_;
  const std::vector<Trial> before = told_;
  const auto again = run(shapes, db.get());
  ASSERT_TRUE(again) << error_;
  for (const ShapeResult& s : again->shapes) EXPECT_GT(s.tuned.first, 0);  // known before
  for (const Trial& t : told_) {
    for (const Trial& b : before) {
      EXPECT_FALSE(t.problem == b.problem && t.schedule == b.schedule) << t.schedule;
    }
  }
  EXPECT_EQ(db->find({}, &error_)->size(), before.size() + told_.size());
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
}
#endif

}  // namespace
}  // namespace nautilus::tune
#endif
