// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/line_values.h"

#include <gtest/gtest.h>

#include "ir/print.h"

namespace nautilus::schedule {
namespace {

constexpr std::string_view kPieces =
    "schedule @sums version 2 equations 928e8c9cf476eecf9ef8d7959489ac84\n"
    "kernel s_parts rows\n"
    "  fuse m_parts\n"
    "  columns 4096; vector 4; hold row\n"
    "kernel s rows\n"
    "  fuse m; inner j pieces 4096 of m; inner j of s against m\n"
    "  columns 256; vector 1; hold row\n"
    "kernel Y rows\n"
    "  columns 1024; vector 4\n";

// Lines about columns of pieces, and about how many pieces there are, are for one length.
TEST(LineValues, AnotherLengthOfPiecesLeavesTheRestOfTheirKernelsToTheRules) {
  expr::ExprPool pool;
  const auto parsed = parse_schedule(kPieces, pool);
  ASSERT_TRUE(parsed) << parsed.rejection().message;
  const ir::Block& lines = parsed->kernels[1].alternatives[0];
  ASSERT_TRUE(lines[1].is<decision::Inner>());
  const target::Target& target = target::default_target();
  const ir::Block others = other_values(lines[1], target);
  ASSERT_EQ(others.size(), target.rows.pieces.size() - 1);
  const Schedule changed = with_value(*parsed, 1, 0, 1, others[0]);
  EXPECT_EQ(print(changed),
            "schedule @sums version 2 equations 928e8c9cf476eecf9ef8d7959489ac84\n"
            "kernel s rows\n"
            "  fuse m; inner j pieces 2048 of m tuned; inner j of s against m\n"
            "kernel Y rows\n"
            "  columns 1024; vector 4\n");
  // The length of the sum is that of the maximum.
  EXPECT_TRUE(other_values(lines[2], target).empty());
  const ir::Block& columns = parsed->kernels[2].alternatives[0];
  const Schedule wider = with_value(*parsed, 2, 0, 0, other_values(columns[0], target)[0]);
  EXPECT_EQ(wider.kernels.size(), 3u);
}

// Each threshold of the line alone, with the others as they are.
TEST(LineValues, OtherSizesThatAnAlternativeServes) {
  const decision::Serves line{{}, 32768, 16, {}};
  std::vector<std::string> texts;
  for (const ir::Op& other : other_values(ir::make(line), target::default_target()))
    texts.push_back(ir::print(other));
  EXPECT_EQ(texts, (std::vector<std::string>{"serves to 8192 points with 16 parts tuned",
                                             "serves to 131072 points with 16 parts tuned",
                                             "serves to 32768 points with 4 parts tuned",
                                             "serves to 32768 points with 64 parts tuned"}));
}

}  // namespace
}  // namespace nautilus::schedule
