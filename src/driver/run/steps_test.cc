// SPDX-License-Identifier: Apache-2.0
#include "driver/run/steps.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

TEST(StepText, PlainLinesForEachKindAndEveryFewSeconds) {
  StepText text(false);
  EXPECT_EQ(text.next({1, 40, "problems"}, 0.1), "0 s  problems: 1 of 40\n");
  EXPECT_EQ(text.next({2, 40, "problems"}, 3), "");
  EXPECT_EQ(text.next({9, 40, "problems"}, 6), "6 s  problems: 9 of 40\n");
  EXPECT_EQ(text.next({1, 12, "constants"}, 6.5), "6 s  constants: 1 of 12\n");
  EXPECT_EQ(text.end(), "");
}

TEST(StepText, OneLineOnATerminal) {
  StepText text(true);
  EXPECT_EQ(text.end(), "");
  EXPECT_EQ(text.next({1, 2, "problems"}, 0), "\r\x1b[K0 s  problems: 1 of 2");
  EXPECT_EQ(text.next({2, 2, "problems"}, 0), "\r\x1b[K0 s  problems: 2 of 2");
  EXPECT_EQ(text.end(), "\r\x1b[K");
}

}  // namespace
}  // namespace nautilus::driver
