// SPDX-License-Identifier: Apache-2.0
// Whether a nest becomes a tile kernel is asked before its passes run: none of them refuses what
// the scheduler tries.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"

namespace nautilus::driver {
namespace {

// What a pass or a verifier of kernels says names the kernel.
constexpr std::string_view kOfAKernel = ": kernel `";

TEST(TileTrials, AreNeverRefusedByAPass) {
  size_t programs = 0;
  size_t trials = 0;
  for (const char* folder : {"/examples", "/bench/foreign"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(NAUTILUS_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".naut") continue;
      Unit unit;
      std::string error;
      const auto text = base::read_file(entry.path().string(), &error);
      ASSERT_TRUE(text) << error;
      const auto program = load_text(entry.path().string(), *text, {}, unit);
      ASSERT_TRUE(program) << entry.path();
      ASSERT_TRUE(first_schedule(*program, unit)) << entry.path();
      ++programs;
      trials += unit.trials.count();
      for (const std::string& why : unit.trials.refusals())
        EXPECT_EQ(why.find(kOfAKernel), std::string::npos) << entry.path() << ": " << why;
    }
  }
  EXPECT_GT(programs, 90U);
  EXPECT_GT(trials, programs);
}

}  // namespace
}  // namespace nautilus::driver
