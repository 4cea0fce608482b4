// SPDX-License-Identifier: Apache-2.0
//
// Distances of known pairs, the threshold, and the order of ties.
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace nautilus::base {
namespace {

TEST(Nearest, Distances) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);
  EXPECT_EQ(edit_distance("osfmtax", "softmax"), 2);
}

TEST(Nearest, SuggestsOnlyNearNames) {
  const std::vector<std::string> names = {"exp", "softmax", "matmul", "max"};
  EXPECT_EQ(nearest_name("sotfmax", names), "softmax");
  EXPECT_EQ(nearest_name("mx", names), "");
  EXPECT_EQ(nearest_name("mac", names), "max");
  EXPECT_EQ(nearest_name("n", {"M", "N"}), "N");
  EXPECT_EQ(nearest_name("matmull", names), "matmul");
  EXPECT_EQ(nearest_name("relu", names), "");
  EXPECT_EQ(nearest_name("exp", names), "exp");
  EXPECT_EQ(nearest_name("", {}), "");
}

TEST(Nearest, UnknownNamesComeWithTheKnownOnes) {
  EXPECT_EQ(no_such_name("kernel", "gem", {"gemm", "rows"}),
            "there is no kernel `gem`; did you mean `gemm`? There are gemm, rows");
  EXPECT_EQ(no_such_name("kernel", "other", {"gemm", "rows"}),
            "there is no kernel `other`; there are gemm, rows");
  EXPECT_EQ(no_such_name("kernel", "other", {}), "there is no kernel `other`; there are none");
}

TEST(Nearest, TiesGoToTheFirst) {
  EXPECT_EQ(nearest_name("cat", {"bat", "hat"}), "bat");
  EXPECT_EQ(nearest_name("cat", {"hat", "bat"}), "hat");
}

}  // namespace
}  // namespace nautilus::base
