// SPDX-License-Identifier: Apache-2.0
// The contract of schedules, over all examples: a printed schedule is complete (its replay gives
// the same kernels), and every changed line changes the kernels or is refused.
#include <gtest/gtest.h>

#include "base/random.h"
#include "driver/kernels/decisions_test_util.h"

namespace nautilus::driver {
namespace {

class DecisionsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string error;
    const auto text = base::read_file(GetParam(), &error);
    ASSERT_TRUE(text) << error;
    program_ = load_text(GetParam(), *text, {}, unit_);
    ASSERT_TRUE(program_);
    first_ = first_schedule(*program_, unit_);
    ASSERT_TRUE(first_);
  }

  std::string kernels_of(const schedule::Schedule& decisions, std::string* why) {
    return driver::kernels_of(*program_, decisions, unit_, why);
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::optional<FirstSchedule> first_;
};

TEST_P(DecisionsTest, APrintedScheduleIsComplete) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto kernels = compile::to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  const std::string text = schedule::print(first_->decisions);
  const auto parsed = schedule::parse_schedule(text, unit_.pool);
  ASSERT_TRUE(parsed) << parsed.rejection().message << "\n" << text;
  EXPECT_EQ(schedule::print(*parsed), text);
  std::string why;
  EXPECT_TRUE(kernels_of(*parsed, &why) == emitted(*kernels, unit_.pool)) << why << "\n" << text;
}

// Kernels in front of the one that an alternative of the schedule is named for.
size_t in_front(decision::Form form, const ir::Block& alternative) {
  if (form == decision::Form::Scatter) return 1;
  for (const ir::Op& line : alternative) {
    const auto* merge = line.get<decision::Merge>();
    if (merge) return static_cast<size_t>(1 + merge->pairs.value_or(0));
  }
  return 0;
}

// Each compiled kernel is an alternative of the schedule, of any form, or in front of one.
TEST_P(DecisionsTest, EveryKernelHasItsLines) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto kernels = compile::nests_to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  size_t made = 0;
  for (const ir::Op& op : kernels->body) made += op.is<matile::Kernel>() ? 1 : 0;
  size_t alternatives = 0;
  for (const schedule::KernelSchedule& k : first_->decisions.kernels) {
    for (const ir::Block& alternative : k.alternatives) {
      EXPECT_FALSE(alternative.empty()) << k.name;
      alternatives += 1 + in_front(k.form, alternative);
    }
  }
  EXPECT_EQ(alternatives, made) << schedule::print(first_->decisions);
}

TEST_P(DecisionsTest, AChangedLineChangesTheKernelsOrIsRefused) {
  std::string why;
  const std::string usual = kernels_of(first_->decisions, &why);
  ASSERT_FALSE(usual.empty()) << why;
  // By its name: the same in every folder.
  const std::string name = std::filesystem::path(GetParam()).filename().string();
  base::Random random(std::hash<std::string>()(name));
  for (size_t k = 0; k < first_->decisions.kernels.size(); ++k) {
    const auto& alternatives = first_->decisions.kernels[k].alternatives;
    for (size_t w = 0; w < alternatives.size(); ++w) {
      for (size_t n = 0; n < alternatives[w].size(); ++n) {
        const std::vector<ir::Op> others = with_other_values(alternatives[w][n]);
        // A third of the lines, one value each: all of them take many minutes.
        if (others.empty() || !random.chance(w == 0 ? 0.33 : 0.1)) continue;
        schedule::Schedule changed = first_->decisions;
        const auto pick = random.integer(0, static_cast<int64_t>(others.size()) - 1);
        const ir::Op& other = others[static_cast<size_t>(pick)];
        changed.kernels[k].alternatives[w][n] = other;
        why.clear();
        const std::string kernels = kernels_of(changed, &why);
        if (kernels.empty()) {
          EXPECT_FALSE(why.empty()) << ir::print(other);
        } else {
          EXPECT_TRUE(kernels != usual) << "`" << ir::print(other) << "` has no effect";
        }
      }
    }
  }
}

// Lines about the program: with all kernels as they were, and with kernels by rule.
class ProgramDecisionsTest : public DecisionsTest {};

TEST_P(ProgramDecisionsTest, AChangedLineChangesTheKernelsOrIsRefused) {
  for (const bool has_kernels : {true, false}) {
    schedule::Schedule first = first_->decisions;
    if (!has_kernels) first.kernels.clear();
    std::string why;
    const std::string usual = kernels_of(first, &why);
    ASSERT_FALSE(usual.empty()) << why;
    for (size_t n = 0; n < first.lines.size(); ++n) {
      for (const ir::Op& other : with_other_values(first.lines[n])) {
        schedule::Schedule changed = first;
        changed.lines[n] = other;
        why.clear();
        const std::string kernels = kernels_of(changed, &why);
        if (kernels.empty()) {
          EXPECT_FALSE(why.empty()) << ir::print(other);
        } else {
          EXPECT_TRUE(kernels != usual) << "`" << ir::print(other) << "` has no effect";
        }
      }
    }
  }
}

// As texts had it before there were such lines.
TEST_P(ProgramDecisionsTest, WithoutLinesAboutOperandsTheRulesDecide) {
  std::string why;
  const std::string usual = kernels_of(first_->decisions, &why);
  ASSERT_FALSE(usual.empty()) << why;
  schedule::Schedule old = first_->decisions;
  std::erase_if(old.lines, [](const ir::Op& line) { return decision::is_about_equations(line); });
  EXPECT_TRUE(kernels_of(old, &why) == usual) << why;
  const auto again = replay(*program_, old, unit_, &why);
  ASSERT_TRUE(again) << why;
  EXPECT_EQ(schedule::print(again->decisions), schedule::print(first_->decisions));
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramDecisionsTest,
                         ::testing::ValuesIn(programs_with_operands()), [](const auto& example) {
                           return std::filesystem::path(example.param).stem().string();
                         });

INSTANTIATE_TEST_SUITE_P(Examples, DecisionsTest, ::testing::ValuesIn(example_files()),
                         [](const auto& example) {
                           return std::filesystem::path(example.param).stem().string();
                         });

}  // namespace
}  // namespace nautilus::driver
