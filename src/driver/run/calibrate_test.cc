// SPDX-License-Identifier: Apache-2.0
#include "driver/run/calibrate.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

TEST(Calibrate, ConstantsFollowFromTimes) {
  const target::Target& target = target::sm_90a();
  const double second = 1 / (target.board.clock_ghz * 1e9);  // of one cycle
  EXPECT_DOUBLE_EQ(memory_bytes_per_cycle(4800, 2 * second, target), 2400);
  const double products =
      target.costs.products_per_cycle * static_cast<double>(target.board.sms) * 100;
  EXPECT_NEAR(alone_factor(products, 129 * second, target), 1.29, 1e-9);
  // One function for every lane of the machine, in eight cycles.
  EXPECT_NEAR(special_slots(32.0 * 4 * static_cast<double>(target.board.sms), 8 * second, target),
              8, 1e-9);
}

TEST(Calibrate, TextNamesEveryConstant) {
  const std::string text = to_text({{"alone_factor", 1.3, 1.29, "a product"}}, target::sm_90a());
  EXPECT_NE(text.find("alone_factor = 1.3  # 1.29 in the table; a product"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace nautilus::driver
