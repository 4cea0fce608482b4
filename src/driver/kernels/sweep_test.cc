// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/sweep.h"
#include "schedule/text/schedule.h"

#include <gtest/gtest.h>

#include "driver/kernels/scheduling.h"
#include "ir/print.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kSwept = R"(
dims M, N            static D = 64
hint M = 512, N = 16384
Q: bf16[M, D]
K, V: bf16[N, D]
S[i,j] = sum[d] Q[i,d] * K[j,d]
O[i,e] = sum[j] softmax[j](S[i,j]) * V[j,e]  -> bf16
)";

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = load_text("a.naut", std::string(kSwept), {}, unit_);
    ASSERT_TRUE(program_);
  }

  FirstSchedule replayed(std::string_view text) {
    std::string error;
    auto s = replay_schedule(*program_, text, unit_, &error);
    EXPECT_TRUE(s) << error << "\n" << text;
    return s ? *s : FirstSchedule{};
  }

  Unit unit_;
  std::optional<ir::Program> program_;
};

TEST_F(SweepTest, EachScheduleIsAnotherOneWithASingleKernel) {
  const auto swept = sweep(*program_, SweepOf::Everything, 8, unit_);
  ASSERT_TRUE(swept);
  std::set<std::string> programs;
  std::set<std::string> names;
  size_t parts = 0;
  for (const SweptSchedule& s : *swept) {
    // Rewrites that find nothing to do are refused.
    if (s.name.starts_with("algebra ") && !s.why.empty()) continue;
    ASSERT_TRUE(s.why.empty()) << s.name << ": " << s.why;
    const FirstSchedule again = replayed(s.text);
    EXPECT_EQ(again.nests.size(), 1u) << s.text;
    EXPECT_TRUE(s.text.ends_with(schedule::print(again.decisions))) << s.text;
    programs.insert(ir::print(again.program));
    names.insert(s.name);
    parts += s.name.find("parts") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(programs.size(), 8u);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_GT(parts, 0u);  // 4 tiles of 128 rows, hundreds of steps
}

TEST_F(SweepTest, AFilledScheduleIsTheOneWrittenByHand) {
  const auto first = first_schedule(*program_, unit_);
  ASSERT_TRUE(first);
  schedule::Schedule open = first->decisions;
  const std::string stream(first->kernels[0].fusion.stream.name().str());
  std::erase_if(open.kernels, [](const auto& k) { return k.form != decision::Form::Tile; });
  for (schedule::KernelSchedule& k : open.kernels) {
    k.alternatives.resize(1);
    std::erase_if(k.alternatives[0], [](const ir::Op& op) {
      return op.is<decision::Split>() || op.is<decision::Groups>() ||
             decision::topic(op.info()) > decision::Topic::Sizes;
    });
  }
  // The text with another word for the size of a step.
  const auto with_step = [&](std::string_view step) {
    std::string text = schedule::print(open);
    const size_t at = text.find("tile " + stream + " ") + 6 + stream.size();
    return text.replace(at, text.find_first_of(";\n", at) - at, step);
  };
  std::string error;
  const auto swept = sweep_holes(*program_, with_step("?{64,96}"), 10, unit_, &error);
  ASSERT_TRUE(swept) << error;
  ASSERT_EQ(swept->size(), 2u);
  EXPECT_NE((*swept)[1].text.find("96 tuned"), std::string::npos) << (*swept)[1].text;
  EXPECT_EQ(ir::print(replayed((*swept)[1].text).program),
            ir::print(replayed(with_step("96")).program));
}

// Rows have no candidates with costs: lines of their ways are tried one by one, each legal or
// refused with the line.
TEST(Sweep, LinesOfRowsAreTried) {
  Unit unit;
  const auto program = load_text(
      "a.naut", "dims M, N\nX: bf16[M, N]\ns[i] = sum[j] f32(X[i,j])  -> f32\n", {}, unit);
  ASSERT_TRUE(program);
  const auto swept = sweep(*program, SweepOf::Everything, 100, unit);
  ASSERT_TRUE(swept);
  size_t legal = 0;
  std::set<std::string> texts;
  for (const SweptSchedule& s : *swept) {
    // Or other kernels, points in place of rows.
    EXPECT_TRUE(s.name.starts_with("kernel s alternative") || s.name.starts_with("algebra ") ||
                s.name.starts_with("points s"))
        << s.name;
    if (!s.why.empty()) continue;
    ++legal;
    texts.insert(s.text);
    std::string error;
    const auto again = replay_schedule(*program, s.text, unit, &error);
    ASSERT_TRUE(again) << error;
    EXPECT_EQ(refused_lines(*again, unit), "") << s.text;
  }
  EXPECT_GT(legal, 5u);
  EXPECT_EQ(texts.size(), legal);
}

}  // namespace
}  // namespace nautilus::driver
