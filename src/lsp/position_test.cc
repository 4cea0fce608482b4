// SPDX-License-Identifier: Apache-2.0
#include "lsp/position.h"

#include <gtest/gtest.h>

namespace nautilus::lsp {
namespace {

TEST(LspPosition, CountsUnitsOfUtf16) {
  const std::string text = "a\xC3\xA9\xF0\x9F\x90\x9Az\nb";  // a, e acute, a shell, z
  const LineTable lines(text);
  EXPECT_EQ(lines.position(1), (Position{0, 1}));
  EXPECT_EQ(lines.position(3), (Position{0, 2}));
  EXPECT_EQ(lines.position(7), (Position{0, 4}));
  EXPECT_EQ(lines.position(9), (Position{1, 0}));
  EXPECT_EQ(lines.offset({0, 4}), 7U);
  EXPECT_EQ(lines.offset({0, 3}), 7U) << "the second half of a character is at its end";
  EXPECT_EQ(lines.offset({1, 1}), 10U);
}

TEST(LspPosition, TakesThreeKindsOfLineEnds) {
  const std::string text = "a\r\nb\rc\nd";
  const LineTable lines(text);
  for (const auto& [offset, line] : {std::pair<size_t, int64_t>{0, 0}, {3, 1}, {5, 2}, {7, 3}})
    EXPECT_EQ(lines.position(offset), (Position{line, 0}));
}

TEST(LspPosition, BehindTheEndIsTheEnd) {
  const std::string text = "ab\r\ncd";
  const LineTable lines(text);
  EXPECT_EQ(lines.offset({0, 99}), 2U) << "not into the line's end";
  EXPECT_EQ(lines.offset({99, 0}), 6U);
  EXPECT_EQ(lines.offset({-1, 0}), 0U);
  EXPECT_EQ(lines.position(99), (Position{1, 2}));
  EXPECT_EQ(LineTable("").offset({0, 0}), 0U);
}

}  // namespace
}  // namespace nautilus::lsp
