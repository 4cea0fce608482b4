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
  EXPECT_EQ(error_of("tile j 176 auto", "tile j 64 user  # smaller steps"), "");
  EXPECT_NE(edited_.find("(N + 63) / 64"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("cta 64 wg 64 auto", "cta 192 wg 64 user"), "");
  EXPECT_NE(edited_.find("for w < 3 group"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\norder j descending user\n"), "");
  EXPECT_NE(edited_.find(" down "), std::string::npos) << edited_;
}

TEST_F(SchedulingTest, WhatIsNotLegalIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("tile j 176", "tile j 100"),
            "`tile j 100`: a step is a multiple of 16 up to 256");
  EXPECT_EQ(error_of("cta 64", "cta 100"),
            "`tile i cta 100 wg 64`: a warp group has 64, 128 or 192 rows, a tile 1 to 4 groups");
  EXPECT_EQ(error_of("roll O.max", "fuse O.max"),
            "`fuse O.max`: it is a reduction over the streamed axis: `roll`");
  EXPECT_EQ(error_of("fuse S auto", "fuse Z auto"), "`fuse Z`: there is no such statement");
  EXPECT_EQ(error_of("tile j 176", "tile q 128"), "`tile q 128`: it is no axis of a tile");
  EXPECT_EQ(error_of("kernel O.sum_2.acc", "kernel O"), "`kernel O`: `O` is no reduction");
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
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j 3 combine last user\n"), "");
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j fill or_whole combine kernel user\n"),
            "");
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j 3 combine first user\n"),
            "line 11: `split j 3 combine first user` is no decision");
  EXPECT_EQ(error_of("fuse O auto\n", "fuse O auto\nsplit j 3 or_none user\n"),
            "line 11: `split j 3 or_none user` is no decision");
}

// Every kernel of a program in three parts of steps of 16, against the definition.
std::string difference_in_parts(std::string_view text,
                                const std::map<std::string, int64_t>& sizes) {
  Unit unit;
  const auto program = load_text("p.naut", std::string(text), {}, unit);
  if (!program) return "it does not load";
  const auto first = first_schedule(*program, unit);
  if (!first) return "it has no schedule";
  schedule::Schedule edited = first->decisions;
  std::erase_if(edited.decisions, [](const auto& d) { return d.verb == "split"; });
  for (size_t k = 0; k < edited.decisions.size(); ++k) {
    schedule::Decision& d = edited.decisions[k];
    // The streamed axis stands behind the rows.
    const bool is_stream =
        d.verb == "tile" && d.words.size() == 2 && edited.decisions[k - 1].words.size() == 5;
    if (!is_stream) continue;
    d.words[1] = "16";
    const schedule::Decision split{"split", {d.words[0], "3"}, schedule::Provenance::User};
    edited.decisions.insert(edited.decisions.begin() + static_cast<std::ptrdiff_t>(k) + 1, split);
  }
  std::string error;
  const auto again = replay_schedule(*program, schedule::print(edited), unit, &error);
  if (!again) return error;
  if (ir::print(again->program).find(".parts") == std::string::npos) return "nothing is split";
  RunRequest request;
  request.given.sizes.insert(sizes.begin(), sizes.end());
  return check_scheduled(*program, again->program, request, unit).value_or("it does not run");
}

TEST(Parts, AgreeWithTheDefinition) {
  EXPECT_EQ(difference_in_parts(kAttention, {{"M", 3}, {"N", 75}}), "");
  EXPECT_EQ(difference_in_parts(kAttention, {{"M", 3}, {"N", 1}}), "");
  // A window, an initial element, a second output of the reference.
  EXPECT_EQ(difference_in_parts(R"(
dims M, N            static D = 16
hint M = 5, N = 90
Q: bf16[M, D]
K, V: bf16[N, D]
z: f32[M]
S[i,j] = sum[d] Q[i,d] * K[j,d] * 9.0
T[i,j] = where(j >= 40 + i and j < 60 + i, S[i,j], -inf)
O[i,e] = sum[j] softmax_sink[j](T[i,j], z[i]) * V[j,e]  -> bf16
L[i] = logsumexp[j](T[i,j])                            -> f32
)",
                                {}),
            "");
  // A row's own reduction in front of the steps, which is an output, too.
  EXPECT_EQ(difference_in_parts(R"(
dims M, N            static D = 16
hint M = 5, N = 90
Q: bf16[M, D]
K, V: bf16[N, D]
n[i] = sum[d] f32(Q[i,d]) * f32(Q[i,d])  -> f32
S[i,j] = sum[d] Q[i,d] * K[j,d] / (1.0 + n[i])
O[i,e] = sum[j] softmax[j](S[i,j]) * V[j,e]  -> bf16
)",
                                {}),
            "");
}

TEST_F(SchedulingTest, AStatementLeftOutIsReadFromMemory) {
  EXPECT_EQ(error_of("fuse S auto\n", ""), "");
  EXPECT_NE(edited_.find("buffer S : f32[M, N] temp"), std::string::npos) << edited_;
}

}  // namespace
}  // namespace nautilus::driver
