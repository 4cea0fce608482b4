// SPDX-License-Identifier: Apache-2.0
// Every step between passes is a program: it parses, prints the same, verifies, and gives the same
// result as the whole.
#include "compile/dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "compile/manager.h"
#include "driver/check/numbered_names.h"
#include "driver/kernels/lower_to_kernels.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "matile/ops.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> out;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(NAUTILUS_SOURCE_DIR) + "/examples")) {
    if (file.path().extension() == ".naut") out.push_back(file.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

const ir::Op* kernel_of(const ir::Program& program, const std::string& name) {
  for (const ir::Op& op : program.body) {
    if (op.is<matile::Kernel>() && op.as<matile::Kernel>().name.str() == name) return &op;
  }
  return nullptr;
}

// Of the whole program, not of one kernel alone.
bool is_of_program(const ir::PassTrace::Step& step) {
  const compile::Stage stage = compile::the_pass(step.pass).stage;
  return stage == compile::Stage::Equations || stage == compile::Stage::Plan ||
         stage == compile::Stage::Together || step.program.level->name == "scalar" ||
         step.pass == "program_to_matile";
}

// The kernels of a dump's text, made in a unit of its own.
std::optional<ir::Program> kernels_from(const std::string& text, Unit& unit) {
  const auto program = load_text("dump", text, {}, unit);
  return program ? lower_to_kernels(*program, unit) : std::nullopt;
}

class Dumps : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string error;
    const auto text = base::read_file(GetParam(), &error);
    ASSERT_TRUE(text) << error;
    program_ = load_text(GetParam(), *text, {}, unit_);
    ASSERT_TRUE(program_);
    const auto kernels = make_kernels(*program_, {.schedule = {}, .trace = &trace_}, unit_, &error);
    ASSERT_TRUE(kernels) << error;
    kernels_ = kernels->program;
  }

  Unit unit_;
  ir::PassTrace trace_;
  std::optional<ir::Program> program_;
  ir::Program kernels_;
};

TEST_P(Dumps, ArePrograms) {
  ASSERT_FALSE(trace_.steps.empty());
  for (const ir::PassTrace::Step& step : trace_.steps) {
    const std::string text = ir::print(step.program);
    Unit unit;
    const auto again = load_text("dump", text, {}, unit);  // verifies
    ASSERT_TRUE(again) << unit.sink.all()[0].message << "\n" << text;
    EXPECT_EQ(ir::print(*again), text);
  }
}

// A third of the steps, others for each example: a step costs what compiling costs.
TEST_P(Dumps, GoOnToTheSameKernels) {
  std::map<std::string, const ir::PassTrace::Step*> last;  // of each kernel
  for (const ir::PassTrace::Step& step : trace_.steps) {
    if (!is_of_program(step)) last[step.unit] = &step;
  }
  size_t number = GetParam().size();
  for (const ir::PassTrace::Step& step : trace_.steps) {
    if (number++ % 3 != 0) continue;
    SCOPED_TRACE(step.unit + " after " + step.program.after);
    Unit unit;
    const auto got = kernels_from(ir::print(step.program), unit);
    ASSERT_TRUE(got) << (unit.sink.all().empty() ? "" : unit.sink.all()[0].message);
    if (is_of_program(step)) {
      EXPECT_EQ(ir::print(*got), ir::print(kernels_));
      continue;
    }
    // The result of the kernel's last step: in the whole program, other passes may have joined it
    // with the statements after it. Names have other numbers where fewer are in use.
    Unit other;
    const auto want = kernels_from(ir::print(last.at(step.unit)->program), other);
    ASSERT_TRUE(want);
    ASSERT_TRUE(kernel_of(*got, step.unit) && kernel_of(*want, step.unit));
    const std::string got_text = ir::print(*kernel_of(*got, step.unit));
    const std::string want_text = ir::print(*kernel_of(*want, step.unit));
    if (step.program.level->name == "matile") {
      EXPECT_EQ(got_text, want_text);
    } else {
      EXPECT_EQ(with_numbered_names(got_text), with_numbered_names(want_text));
    }
  }
}

// The text of each level is input again, and the kernels of it are those of the program.
TEST_P(Dumps, LevelsAreInput) {
  for (const char* level : {"scalar", "vrtile", "matile"}) {
    SCOPED_TRACE(level);
    const auto text = compile::text_at(level, *program_, trace_, kernels_);
    if (!text) {
      EXPECT_STREQ(level, "vrtile");
      continue;
    }
    Unit unit;
    const auto again = load_text("printed", *text, {}, unit);
    ASSERT_TRUE(again) << unit.sink.all()[0].message << "\n" << *text;
    EXPECT_EQ(again->level->name, level);
    const auto kernels = lower_to_kernels(*again, unit);
    ASSERT_TRUE(kernels) << (unit.sink.all().empty() ? "" : unit.sink.all()[0].message);
    if (std::string_view(level) != "vrtile") {
      EXPECT_EQ(ir::print(*kernels), ir::print(kernels_));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, Dumps, testing::ValuesIn(examples()), [](const auto& param) {
  std::string name = std::filesystem::path(param.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace nautilus::driver
