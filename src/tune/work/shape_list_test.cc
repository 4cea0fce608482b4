// SPDX-License-Identifier: Apache-2.0
#include "tune/work/shape_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nautilus::tune {
namespace {

using List = std::vector<WeightedSizes>;

std::string refusal(std::string_view text) {
  std::string error;
  EXPECT_FALSE(read_shapes(text, "trace", &error)) << text;
  return error;
}

TEST(ShapeList, LinesAndTablesSayTheSame) {
  const List expected = {{{{"B", 1}, {"N", 4096}}, 3}, {{{"B", 8}, {"N", 1024}}, 1}};
  std::string error;
  EXPECT_EQ(read_shapes("# a trace\n{\"B\": 1, \"N\": 4096, \"weight\": 3}\n\n"
                        "{\"N\": 1024, \"B\": 8}\n",
                        "trace", &error),
            expected)
      << error;
  EXPECT_EQ(read_shapes("B,N,count\r\n8,1024,1\r\n1,4096,3\r\n", "trace", &error), expected)
      << error;
  EXPECT_EQ(read_shapes("N, B\n4096, 1\n1024, 8\n4096, 1\n4096, 1", "trace", &error), expected)
      << error;
}

TEST(ShapeList, TheOrderDoesNotCount) {
  const List list = {{{{"N", 3}}, 1}, {{{"N", 1}}, 2}, {{{"N", 2}}, 4}, {{{"N", 1}}, 1}};
  List other = list;
  std::sort(other.begin(), other.end(),
            [](const auto& a, const auto& b) { return a.weight < b.weight; });
  EXPECT_EQ(in_order(list), in_order(other));
  EXPECT_EQ(in_order(list), (List{{{{"N", 1}}, 3}, {{{"N", 2}}, 4}, {{{"N", 3}}, 1}}));
}

TEST(ShapeList, BadLinesAreNamed) {
  EXPECT_EQ(refusal("B,N\n1,4096\n8\n"), "trace:3: 2 columns are expected (B,N), not 1");
  EXPECT_EQ(refusal("B,N\n1,4k\n"), "trace:2: size `N` is a whole number from 1, not `4k`");
  EXPECT_EQ(refusal("B,weight\n1,-2\n"), "trace:2: `weight` is a number above 0, not `-2`");
  EXPECT_EQ(refusal("1,4096\n"),
            "trace:1: a table begins with the names of its columns, such as B,N,weight, not with "
            "`1,4096`");
  EXPECT_EQ(refusal("B,B\n"), "trace:1: column `B` stands twice");
  EXPECT_EQ(refusal("weight\n1\n"), "trace:1: no column has sizes");
  EXPECT_EQ(refusal("{\"B\": 1}\n{\"B\": 0}\n"),
            "trace:2: size `B` is a whole number from 1, not `0`");
  EXPECT_EQ(refusal("{\"B\": 1}\n{\"B\": \"x\"}\n"),
            "trace:2: size `B` is a whole number from 1, not `\"x\"`");
  const std::string object = "a line is an object such as {\"B\": 1, \"N\": 4096, \"weight\": 3}";
  EXPECT_EQ(refusal("\n{\"B\": 1\n"), "trace:2: " + object);
  EXPECT_EQ(refusal("{\"B\": 1}\n1,2\n"), "trace:2: " + object);
  EXPECT_EQ(refusal("B\n1\n{\"B\": 1}\n"), "trace:3: 1 columns are expected (B), not an object");
  EXPECT_EQ(refusal("\n"),
            "trace: no shapes; " + object + ", or a table with the names of its columns first");
}

}  // namespace
}  // namespace nautilus::tune
