// SPDX-License-Identifier: Apache-2.0
// The contract of schedules, over all examples: a printed schedule is complete (its replay gives
// the same kernels), and every changed line changes the kernels or is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "compile/kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> example_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(NAUTILUS_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Programs with operands that are stored in ways that no example has: tensors of 16-bit numbers,
// limbs of images with zeros around them.
std::vector<std::string> programs_with_operands() {
  std::vector<std::string> out = example_files();
  for (const char* name :
       {"attention_rope", "chain_conv_bias_relu", "chain_conv_mean", "gemm_f32", "state_space"})
    out.push_back(fmt::format("{}/bench/foreign/{}.naut", NAUTILUS_SOURCE_DIR, name));
  return out;
}

// Other values of one field of a decision: all of an enum, numbers near and far, other orders.
std::vector<ir::Op> with_other_values(const ir::Op& line) {
  std::vector<ir::Op> out;
  for (const ir::Field& f : line.info().fields) {
    const auto add = [&](auto value) {
      auto data = ir::copy_data(line);
      ir::field_value<decltype(value)>(data.get(), f) = value;
      out.push_back(decision::with_by({line.info(), {}, std::move(data)}, decision::By::User));
    };
    // Not what the line is about.
    if (f.kind == ir::FieldKind::Enum && f.name != "by" && f.name != "rewrite") {
      const auto now = ir::field_value<uint8_t>(line.data(), f);
      // Some have a first word that is the rule's choice, as if nothing was said.
      const uint8_t first = f.name == "zeros" ? 1 : 0;
      for (uint8_t k = first; k < f.words->size(); ++k)
        if (k != now) add(k);
    }
    if (f.name == "axes" && line.is<decision::Store>()) {
      ir::Names order = line.as<decision::Store>().axes;
      if (order.size() < 2) continue;
      std::swap(order.back(), order[order.size() - 2]);
      add(order);
      if (order.size() > 2) std::swap(order[0], order.back());
      if (order.size() > 2) add(order);
      order.pop_back();
      add(order);
    }
    if (line.is<decision::Depth>() && f.name == "axes" &&
        !line.as<decision::Depth>().axes.empty()) {
      ir::Names order = line.as<decision::Depth>().axes;
      std::swap(order.front(), order.back());
      add(order);
      add(ir::Names());
    }
    if (f.kind == ir::FieldKind::Int) {
      const auto now = ir::field_value<ir::OptionalInt>(line.data(), f);
      if (!now) continue;
      for (const int64_t n : {int64_t{0}, *now - 1, *now + 1, *now / 2, 2 * *now, *now + 16})
        if (n != *now) add(ir::OptionalInt(n));
    }
  }
  return out;
}

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

  // The kernels of a schedule as text, or why there are none.
  std::string kernels_of(const schedule::Schedule& decisions, std::string* why) {
    const auto built = replay(*program_, decisions, unit_, why);
    if (!built) return "";
    diag::Sink sink(unit_.sources);
    ir::PassContext context{unit_.pool, sink, {}};
    const auto kernels = compile::to_kernels(built->program, context);
    if (!kernels) *why = sink.all().empty() ? "no reason" : sink.all()[0].message;
    return kernels ? ir::print(*kernels) : "";
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
  EXPECT_EQ(kernels_of(*parsed, &why), ir::print(*kernels)) << why << "\n" << text;
}

// Tile kernels, rows, points and parts: each compiled kernel is an alternative of the schedule.
TEST_P(DecisionsTest, EveryKernelHasItsLines) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto kernels = compile::nests_to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  size_t made = 0;
  for (const ir::Op& op : kernels->body) made += op.is<matile::Kernel>() ? 1 : 0;
  size_t alternatives = 0;
  for (const schedule::KernelSchedule& k : first_->decisions.kernels) {
    alternatives += k.alternatives.size();
    for (const ir::Block& alternative : k.alternatives) EXPECT_FALSE(alternative.empty()) << k.name;
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
        // A third of the lines, one value each: all of them would take many minutes.
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
          EXPECT_NE(kernels, usual) << "`" << ir::print(other) << "` has no effect";
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
