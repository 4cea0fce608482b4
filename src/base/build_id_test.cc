// SPDX-License-Identifier: Apache-2.0
#include "base/build_id.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nautilus::base {
namespace {

TEST(BuildId, IsTheHashOfThisProgram) {
  const std::string& id = build_id();
  ASSERT_GE(id.size(), 16u);
  EXPECT_TRUE(std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  })) << id;
  EXPECT_EQ(id, build_id());
}

}  // namespace
}  // namespace nautilus::base
