// SPDX-License-Identifier: Apache-2.0
#include "compile/change_text.h"

#include <gtest/gtest.h>

namespace nautilus::compile {
namespace {

TEST(ChangeText, CountsWhatComesGoesAndIsRewritten) {
  EXPECT_EQ(
      change_text("loop j\n  set a = 1\n  fill b\n", "loop j\n  set a = 2\n  vote c\n  vote d\n"),
      "+2 vote, -1 fill; 1 set rewritten");
  EXPECT_EQ(change_text("set a\nset b\n", "set a\n"), "-1 set");
}

TEST(ChangeText, OpsThatReadTheSameOnlyMove) {
  EXPECT_EQ(change_text("if p\n  set a\nset b\n", "set b\nif p\n  set a\n"), "ops move");
  EXPECT_EQ(change_text("if p\nset a\n", "if p\n  set a\n"), "ops move");
}

// A pass removes the lines that it reads; the report names these lines and does not count them as a
// change.
TEST(ChangeText, DecisionsDoNotCount) {
  EXPECT_EQ(change_text("kernel k\n  decisions\n    loop down\n    ring K\n  set a\n",
                        "kernel k\n  decisions\n    ring K\n  loop j\n    set a\n"),
            "+1 loop");
  EXPECT_EQ(change_text("kernel k\n  set a\n", "kernel k\n  decisions\n    ring K\n  set a\n"),
            "lines alone");
}

}  // namespace
}  // namespace nautilus::compile
