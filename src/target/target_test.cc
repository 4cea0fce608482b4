// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/files.h"

namespace nautilus::target {
namespace {

TEST(Target, IsFoundByItsName) {
  std::set<std::string_view> names;
  for (const Target* t : targets()) {
    EXPECT_TRUE(names.insert(t->name).second) << t->name;
    EXPECT_EQ(find_target(t->name), t);
  }
  EXPECT_EQ(find_target("sm_1"), nullptr);
}

// The share of a multiprocessor for each of several CTAs, computed by hand.
TEST(Target, CtasShareAMultiprocessor) {
  const Limits& l = sm_90a().limits;
  EXPECT_EQ(l.shared_bytes(), 232448);
  EXPECT_EQ(l.shared_bytes(2), 233472 / 2 - 1024);
  EXPECT_EQ(l.registers(384, 1), 168);  // 170.7 in steps of 8
  EXPECT_EQ(l.registers(256, 2), 128);
  EXPECT_EQ(l.registers(128, 1), 248);  // not 512: an instruction names no more
}

// Tables have numbers for this many groups, and a role can have them.
TEST(Target, GroupsOfATileHaveNumbers) {
  for (const Target* t : targets()) {
    EXPECT_LE(t->tiles.groups, kMostGroups) << t->name;
    EXPECT_LE(t->tiles.groups, t->limits.role_groups) << t->name;
    EXPECT_LE(t->tiles.usual_groups, t->tiles.groups) << t->name;
  }
}

// The made-up target is good for tests only as far as it differs.
TEST(Target, ToyHasOtherLimitsAndCosts) {
  EXPECT_EQ(toy().limits.cta_shared_bytes, sm_90a().limits.cta_shared_bytes / 2);
  EXPECT_EQ(toy().board.sms, 64);
  EXPECT_EQ(toy().limits.cluster_ctas, 1);
  EXPECT_NE(toy().costs.memory_bytes_per_cycle, sm_90a().costs.memory_bytes_per_cycle);
  EXPECT_TRUE(toy().architecture.empty());
}

// Every number of a target, with its meaning, is a row of the page about targets. Structs that are
// one row, and the groups themselves, are not.
TEST(Target, EveryFieldIsDocumented) {
  std::string error;
  std::string headers;
  for (const char* name : {"machine.h", "target.h"}) {
    const auto header =
        base::read_file(std::string(NAUTILUS_SOURCE_DIR "/src/target/") + name, &error);
    ASSERT_TRUE(header) << error;
    headers += *header;
  }
  const auto page = base::read_file(NAUTILUS_SOURCE_DIR "/docs/targets.md", &error);
  ASSERT_TRUE(page) << error;
  const std::set<std::string> together = {"FunctionCode", "FunctionSlots", "Target"};
  std::istringstream lines(headers);
  std::string line;
  std::string type;
  size_t fields = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("struct ")) type = line.substr(7, line.find(' ', 7) - 7);
    const size_t end = line.find(';');
    const bool is_field = line.starts_with("  ") && line[2] != ' ' && line[2] != '/' &&
                          end != std::string::npos && line.find('(') == std::string::npos;
    if (!is_field || together.contains(type)) continue;
    const size_t begin = line.rfind(' ', end) + 1;
    const std::string name = line.substr(begin, end - begin);
    if (name == "spare") continue;  // its own fields are rows
    ++fields;
    EXPECT_TRUE(page->find("`" + name + "`") != std::string::npos ||
                page->find("." + name + "`") != std::string::npos)
        << type << "::" << name << " is not in docs/targets.md";
  }
  EXPECT_GT(fields, 150u);
}

}  // namespace
}  // namespace nautilus::target
