// SPDX-License-Identifier: Apache-2.0
// W0106 needs machine code, which tests do not have: sizes replace it.
#include "driver/report/warnings.h"

#include <gtest/gtest.h>

#include "diag/render.h"

namespace nautilus::driver {
namespace {

TEST(Warnings, LargeKernelsAreReportedAtTheirEquation) {
  Unit unit;
  const auto program = load_text(
      "rope.naut", "dims M\nhint M = 64\nX: f32[M]\nY[i] = X[i] * 2.0 -> f32\n", {}, unit);
  ASSERT_TRUE(program);
  report_large_kernels(*program, {{"small", "Y", 4096}, {"large", "Y.sum", 640'000}}, unit);
  EXPECT_EQ(
      diag::render_all(unit.sink),
      R"(warning[W0106]: kernel large has 640 kB of machine code, more than the caches of instructions hold
 --> rope.naut:4:1
   |
 4 | Y[i] = X[i] * 2.0 -> f32
   | ^^^^
   = help: functions that are long code (sines, powers) in a loop over tiles are computed once if an equation of their own has their values
)");
}

}  // namespace
}  // namespace nautilus::driver
