// SPDX-License-Identifier: Apache-2.0
#include "tune/learn/line_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "decision/decisions.h"

namespace nautilus::tune {
namespace {

constexpr std::string_view kHeader = "schedule @p version 2 equations ab\n";

Features of(const std::string& lines, const Running& running = {}) {
  return line_features(std::string(kHeader) + lines, running);
}

double named(const Features& features, std::string_view name) {
  for (size_t k = 0; k < line_feature_names().size(); ++k) {
    if (line_feature_names()[k] == name) return features.at(k);
  }
  ADD_FAILURE() << "no feature `" << name << "`";
  return -1;
}

TEST(LineFeatures, EveryDecisionHasColumns) {
  std::set<std::string> names;
  for (const std::string& name : line_feature_names())
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
  for (const ir::OpInfo* info : decision::vocabulary()) {
    const std::string verb(info->mnemonic());
    const bool is_there = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == verb || name.starts_with(verb + " ");
    });
    EXPECT_TRUE(is_there) << verb;
  }
}

TEST(LineFeatures, WordsAreCountedAndNumbersAreLogarithms) {
  const Features f =
      of("kernel C tile\n"
         "  tile i 126; tile j 62; loop down; ring A slots 2 loader 0; ring B slots 6 loader 1\n");
  EXPECT_EQ(named(f, "tile size, line 1"), 7);
  EXPECT_EQ(named(f, "tile size, line 2"), 6);
  EXPECT_EQ(named(f, "tile size, line 3"), 0);
  EXPECT_EQ(named(f, "tile"), 2);
  EXPECT_EQ(named(f, "loop down"), 1);
  EXPECT_EQ(named(f, "loop up"), 0);
  EXPECT_EQ(named(f, "ring slots, line 2"), 3);
  EXPECT_EQ(named(f, "ring loader, line 1"), 1);  // zero is a number
}

TEST(LineFeatures, OnlyWhatRunsCountsWhereItIsKnown) {
  const std::string two =
      "kernel C tile\n  tile i 126\nor\n  tile i 62\nkernel D rows\n  columns 30\n";
  EXPECT_EQ(named(of(two), "tile size, line 1"), 6.5);
  EXPECT_EQ(named(of(two, {{"C", 0}}), "tile size, line 1"), 7);
  EXPECT_EQ(named(of(two, {{"C", 1}}), "tile size, line 1"), 6);
  EXPECT_EQ(named(of(two, {{"C", 1}}), "columns count, line 1"), 0);
  EXPECT_EQ(named(of(two, {{"C", 1}, {"D", 0}}), "columns count, line 1"), 5);
}

TEST(LineFeatures, WhoChoseALineDoesNotCount) {
  EXPECT_EQ(of("kernel C tile\n  tile i 64\n"), of("kernel C tile\n  tile i 64 tuned\n"));
}

TEST(LineFeatures, ATextOfSomethingElseSaysNothing) {
  EXPECT_EQ(line_features("7 5", {}), Features(line_feature_names().size(), 0));
  EXPECT_TRUE(sample_features({1, 2}, "7 5", {}).empty());  // kernels of another version
  const Features kernels(feature_names().size(), 1);
  EXPECT_EQ(sample_features(kernels, "7 5", {}).size(),
            kernels.size() + line_feature_names().size());
}

}  // namespace
}  // namespace nautilus::tune
