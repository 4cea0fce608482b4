// SPDX-License-Identifier: Apache-2.0
#include "driver/scheduling.h"

#include <gtest/gtest.h>

#include "ir/print.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kAttention = R"(
dims M, N            static D = 16
hint M = 20, N = 30
Q: bf16[M, D]
K, V: bf16[N, D]
S[i,j] = sum[d] Q[i,d] * K[j,d]
O[i,e] = sum[j] softmax[j](S[i,j]) * V[j,e]  -> bf16
)";

class SchedulingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = load_text("a.naut", std::string(kAttention), {}, unit_);
    ASSERT_TRUE(program_);
    const auto first = first_schedule(*program_, unit_);
    ASSERT_TRUE(first);
    text_ = schedule::print(first->decisions);
    scheduled_ = ir::print(first->program);
  }

  // The text with one part replaced; the replay's error, or nothing.
  std::string error_of(std::string_view from, std::string_view to) {
    std::string edited = text_;
    const size_t at = edited.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << text_;
    edited.replace(at, from.size(), to);
    std::string error;
    const auto again = replay_schedule(*program_, edited, unit_, &error);
    edited_ = again ? ir::print(again->program) : "";
    return error;
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::string text_;
  std::string scheduled_;
  std::string edited_;
};

TEST_F(SchedulingTest, ReplayGivesTheSameProgram) {
  const auto parsed = schedule::parse_schedule(text_);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(schedule::print(*parsed), text_);
  std::string error;
  const auto again = replay_schedule(*program_, text_, unit_, &error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(ir::print(again->program), scheduled_);
}

TEST_F(SchedulingTest, EditedDecisionsAreTaken) {
  EXPECT_EQ(error_of("tile j 128 auto", "tile j 64 user  # smaller steps"), "");
  EXPECT_NE(edited_.find("(N + 63) / 64"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("cta 192 wg 64 auto", "cta 64 wg 64 user"), "");
  EXPECT_EQ(edited_.find("group"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\norder j descending user\n"), "");
  EXPECT_NE(edited_.find(" down "), std::string::npos) << edited_;
}

TEST_F(SchedulingTest, WhatIsNotLegalIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("tile j 128", "tile j 100"),
            "`tile j 100`: a step is a multiple of 16 up to 256");
  EXPECT_EQ(error_of("cta 192", "cta 100"),
            "`tile i cta 100 wg 64`: a warp group has 64 rows, a tile 1 to 4 groups");
  EXPECT_EQ(error_of("roll O.max", "fuse O.max"),
            "`fuse O.max`: it is a reduction over the streamed axis: `roll`");
  EXPECT_EQ(error_of("fuse S auto", "fuse Z auto"), "`fuse Z`: there is no such statement");
  EXPECT_EQ(error_of("tile j 128", "tile q 128"), "`tile q 128`: it is no axis of a tile");
  EXPECT_EQ(error_of("kernel O.sum_2.acc", "kernel O"),
            "`kernel O`: `O` is no reduction over one axis");
}

TEST_F(SchedulingTest, WhatIsNoScheduleIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("version 1", "version 2"), "line 1: version 2 is not known");
  EXPECT_EQ(error_of("fuse S auto", "fuse S"), "line 5: a decision ends with auto, tuned or user");
  EXPECT_EQ(error_of("fuse S auto", "melt S auto"), "line 5: `melt S auto` is no decision");
  EXPECT_EQ(error_of("schedule @a hash", "schedule @b hash"),
            "the schedule is for @b, the program is @a");
  std::string error;
  EXPECT_FALSE(replay_schedule(*program_, "", unit_, &error));
  EXPECT_EQ(error, "line 0: the schedule is empty");
}

TEST_F(SchedulingTest, PartsOfTheStreamedAxis) {
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j 3 user\n"), "");
  EXPECT_NE(edited_.find("size j_parts ="), std::string::npos) << edited_;
  EXPECT_EQ(edited_.find("where(j_parts > 1"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j fill or_whole user\n"), "");
  EXPECT_NE(edited_.find("where(j_parts > 1"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit i 3 user\n"),
            "`split i 3`: only the streamed axis has parts");
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j many user\n"),
            "`split j many`: parts are a number, or `fill`");
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j 3 or_none user\n"),
            "line 11: `split j 3 or_none user` is no decision");
}

TEST_F(SchedulingTest, AStatementLeftOutIsReadFromMemory) {
  EXPECT_EQ(error_of("fuse S auto\n", ""), "");
  EXPECT_NE(edited_.find("buffer S : f32[M, N] temp"), std::string::npos) << edited_;
}

}  // namespace
}  // namespace nautilus::driver
