// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/lower_to_kernels.h"
#include "schedule/text/schedule.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "driver/kernels/scheduling.h"
#include "ir/print.h"

namespace nautilus::driver {
namespace {

std::optional<ir::Program> load_example(const std::string& name, Unit& unit) {
  const std::string path = std::string(NAUTILUS_SOURCE_DIR) + "/examples/" + name;
  std::string error;
  const auto text = base::read_file(path, &error);
  EXPECT_TRUE(text) << error;
  return text ? load_text(path, *text, {}, unit) : std::nullopt;
}

TEST(LowerWithSchedule, AnEditedLineChangesTheKernel) {
  Unit unit;
  const auto program = load_example("gemm.naut", unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  std::string text = schedule::print(first->decisions);
  // One kernel, its statements and sizes alone: the rest was decided for other sizes.
  text = text.substr(0, text.find("\n  loop")) + "\n";
  const auto edit = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << text;
    text.replace(text.find(from), from.size(), to);
  };
  edit("groups 2 alternating", "groups 2 sharing");
  edit("tile j 128", "tile j 192");
  std::string error;
  const auto kernels = lower_with_schedule(*program, text, unit, &error);
  ASSERT_TRUE(kernels) << error;
  EXPECT_NE(ir::print(*kernels).find("f32[64, 192] acc"), std::string::npos) << ir::print(*kernels);
}

TEST(LowerWithSchedule, SaysWhyAScheduleDoesNotApply) {
  Unit unit;
  const auto program = load_example("gemm.naut", unit);
  const auto other = load_example("softmax.naut", unit);
  ASSERT_TRUE(program && other);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  std::string error;
  EXPECT_FALSE(lower_with_schedule(*other, schedule::print(first->decisions), unit, &error));
  EXPECT_NE(error.find("the schedule is for @gemm"), std::string::npos) << error;
  EXPECT_FALSE(lower_with_schedule(*program, "no schedule", unit, &error));
  const auto kernels = lower_to_kernels(*program, unit);
  ASSERT_TRUE(kernels);
  EXPECT_FALSE(lower_with_schedule(*kernels, "", unit, &error));
  EXPECT_NE(error.find("math language"), std::string::npos) << error;
}

}  // namespace
}  // namespace nautilus::driver
