// SPDX-License-Identifier: Apache-2.0
#include "driver/check/hide_costs.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

TEST(WithoutCycles, HidesNumbersAndKeepsChoices) {
  EXPECT_EQ(without_cycles("28 candidates; cycles of a step by unit:\n"
                           "  kept 192x160, 3 groups: matrix 587, registers 640; 13330\n"
                           "       64x160, 1 groups: matrix 202, registers 415; 13027\n"
                           "       and 19 others\n"
                           "limbs: predicted to take 0.36 of the time of scalar code\n"
                           "# 64x64 1 group, 18014 cycles\n"),
            "28 candidates; cycles of a step by unit:\n"
            "  kept 192x160, 3 groups: ...\n"
            "       and 19 others\n"
            "limbs: predicted to take ... of the time of scalar code\n"
            "# 64x64 1 group, ... cycles\n");
}

TEST(WithoutCycles, LeavesOtherLinesAlone) {
  const std::string text = "tile i cta 128 wg 64 auto\nin 16 parts take 8 rounds, no newline";
  EXPECT_EQ(without_cycles(text), text);
}

}  // namespace
}  // namespace nautilus::driver
