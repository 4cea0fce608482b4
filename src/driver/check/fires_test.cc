// SPDX-License-Identifier: Apache-2.0
// Every rule has a program of test/fires on which it fires. Whether it does is what
// `nautilus test test/fires` finds out; here is counted that none is forgotten.
#include "driver/check/fires.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "compile/passes.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kProgram = R"(
dims M, N
X: f32[M, N]
y[i] = sum[j] exp(X[i,j])  -> f32
)";

std::string difference(const std::string& fires, const std::string& quiet) {
  Unit unit;
  const auto program = load_text("program.naut", std::string(kProgram), {}, unit);
  EXPECT_TRUE(program);
  return firing_difference(*program, {fires, quiet}, {}, unit).value_or("reported");
}

TEST(Fires, SaysWhichRuleDoesNotAndWhichDoes) {
  EXPECT_EQ(difference("base2,columns", "nest_sums,locate"), "");
  EXPECT_EQ(difference("nest_sums", ""), "`nest_sums` does not fire\n");
  EXPECT_EQ(difference("round", "base2"), "`round` does not fire\n`base2` fires\n");
  EXPECT_EQ(difference("nest_sum", "rounds.X"),
            "there is no pass and no line `nest_sum`\nthere is no pass and no line `rounds.X`\n");
}

// The names after `fires=` in the headers of test/fires.
std::set<std::string> shown_rules() {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(NAUTILUS_SOURCE_DIR "/test/fires")) {
    std::string error;
    const auto text = base::read_file(entry.path().string(), &error);
    EXPECT_TRUE(text) << error;
    constexpr std::string_view kHeader = "# test: fires=";
    for (size_t at = text->find(kHeader); at != std::string::npos; at = text->find(kHeader, at)) {
      at += kHeader.size();
      std::string names = text->substr(at, text->find_first_of(" \n", at) - at) + ",";
      for (size_t comma; (comma = names.find(',')) != std::string::npos;) {
        out.insert(names.substr(0, comma));
        names.erase(0, comma + 1);
      }
    }
  }
  return out;
}

TEST(Fires, EveryPassHasAProgramOnWhichItDoes) {
  const std::set<std::string> shown = shown_rules();
  for (const compile::PassInfo& pass : compile::passes()) {
    // Arrows change the level of every program; passes apart are run by name only.
    if (pass.stage == compile::Stage::Arrow || pass.stage == compile::Stage::Apart) continue;
    EXPECT_TRUE(shown.contains(std::string(pass.name)))
        << "test/fires has no program for the pass " << pass.name;
  }
}

// Rules of scheduling have a line instead of a pass.
TEST(Fires, EveryRuleOfSchedulingHasAProgramOnWhichItDoes) {
  const std::set<std::string> shown = shown_rules();
  for (const char* line : {"algebra.distribute_row_shift.on",
                           "algebra.gather.on",
                           "store",
                           "round",
                           "locate",
                           "roll",
                           "split",
                           "loop.down",
                           "pipeline.1",
                           "segments.on",
                           "reference.lazy",
                           "reference.speculative",
                           "groups.2.alternating",
                           "order.longest",
                           "cluster",
                           "columns",
                           "vector",
                           "lanes",
                           "shared",
                           "keep",
                           "unpacked"}) {
    // As it is, or with the words that follow.
    const auto it = shown.lower_bound(line);
    const bool has_one =
        shown.contains(line) || std::any_of(it, shown.end(), [&](const std::string& name) {
          return name.starts_with(std::string(line) + ".");
        });
    EXPECT_TRUE(has_one) << "test/fires has no program for the line " << line;
  }
}

}  // namespace
}  // namespace nautilus::driver
