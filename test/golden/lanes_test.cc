// SPDX-License-Identifier: Apache-2.0
// Shares of lanes that are never put together are found: every golden kernel without one of its
// `lanes` or `warps` is refused.
#include <gtest/gtest.h>

#include "base/files.h"
#include "driver/run/run.h"

namespace nautilus {
namespace {

// Where the lines begin on which lanes or warps combine shares.
std::vector<size_t> steps_in(const std::string& text) {
  std::vector<size_t> at;
  for (size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
    const size_t first = text.find_first_not_of(' ', line);
    if (text.compare(first, 6, "lanes ") == 0 || text.compare(first, 6, "warps ") == 0)
      at.push_back(line);
    if (text.find('\n', line) == std::string::npos) break;
  }
  return at;
}

TEST(GoldenLanes, NoStepCanBeLeftOut) {
  size_t count = 0;
  for (const std::string& path : base::list_files(NAUTILUS_SOURCE_DIR "/golden", ".matile")) {
    std::string error;
    const auto text = base::read_file(path, &error);
    ASSERT_TRUE(text) << error;
    for (const size_t line : steps_in(*text)) {
      std::string without = *text;
      const std::string step = without.substr(line, without.find('\n', line) - line);
      without.erase(line, step.size() + 1);
      driver::Unit unit;
      const auto program = driver::load_text(path, without, {}, unit);
      ASSERT_FALSE(program) << path << " is accepted without " << step;
      EXPECT_NE(unit.sink.all()[0].message.find("shares"), std::string::npos)
          << path << " without " << step << ": " << unit.sink.all()[0].message;
      ++count;
    }
  }
  EXPECT_GT(count, 50u);
}

}  // namespace
}  // namespace nautilus
