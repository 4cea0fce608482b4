// SPDX-License-Identifier: Apache-2.0
//
// Diffs of known texts, and a property: applying the diff to the first text gives the second, for
// small random texts and for texts beyond the limit of the exact method.
#include "base/diff.h"

#include <cstdio>
#include <random>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace nautilus::base {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t n = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return lines;
}

// A strict patch program: context and removed lines must match, and so must the positions.
std::string patched(const std::string& before, const std::string& diff) {
  const std::vector<std::string> old = lines_of(before), script = lines_of(diff);
  std::string result;
  size_t at = 0, result_lines = 0;
  for (size_t k = 2; k < script.size(); ++k) {
    std::string text = script[k].substr(1);
    if (k + 1 < script.size() && script[k + 1][0] == '\\') text.pop_back();
    switch (script[k][0]) {
      case '@': {
        size_t a = 0, a_count = 1, b = 0, b_count = 1;
        const std::string& s = script[k];
        if (std::sscanf(s.c_str(), "@@ -%zu,%zu", &a, &a_count) < 1) return "bad header";
        std::sscanf(s.c_str() + s.find('+'), "+%zu,%zu", &b, &b_count);
        const size_t start = a_count == 0 ? a : a - 1;
        for (; at < start; ++at, ++result_lines) result += old[at];
        if (result_lines != (b_count == 0 ? b : b - 1)) return "wrong position";
        break;
      }
      case ' ':
        if (old[at++] != text) return "context differs";
        result += text;
        ++result_lines;
        break;
      case '-':
        if (old[at++] != text) return "removed line differs";
        break;
      case '+':
        result += text;
        ++result_lines;
        break;
      case '\\':
        break;
      default:
        return "bad line";
    }
  }
  for (; at < old.size(); ++at) result += old[at];
  return result;
}

TEST(Diff, EqualTextsGiveNothing) {
  EXPECT_EQ(unified_diff("", "", "a", "b"), "");
  EXPECT_EQ(unified_diff("x\ny", "x\ny", "a", "b"), "");
}

TEST(Diff, KnownTexts) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "a", "b"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(unified_diff("", "x\n", "a", "b"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
  EXPECT_EQ(unified_diff("x\n", "", "a", "b"), "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
  EXPECT_EQ(unified_diff("x", "x\n", "a", "b"),
            "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
  EXPECT_EQ(unified_diff("1\n2\n3\n", "0\n1\n2\n3\n4\n", "a", "b", 0),
            "--- a\n+++ b\n@@ -0,0 +1 @@\n+0\n@@ -3,0 +5 @@\n+4\n");
}

TEST(Diff, RandomTextsApply) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    auto text = [&] {
      std::string s;
      for (size_t n = random() % 14; n > 0; --n) s += fmt::format("{}\n", random() % 4);
      if (random() % 4 == 0) s += "end";
      return s;
    };
    const std::string before = text(), after = text();
    const int context = static_cast<int>(random() % 4);
    const std::string diff = unified_diff(before, after, "a", "b", context);
    ASSERT_EQ(patched(before, diff), after) << diff;
  }
}

TEST(Diff, LargeTextsStaySmallAndCorrect) {
  std::string before, after;
  for (int i = 0; i < 60000; ++i) {
    before += fmt::format("line {}\n", i % 3 == 0 ? -1 : i);
    after += fmt::format("line {}\n", i % 100 == 50 ? -2 : i % 3 == 0 ? -1 : i);
  }
  const std::string diff = unified_diff(before, after, "a", "b", 1);
  EXPECT_TRUE(patched(before, diff) == after);
  EXPECT_LT(lines_of(diff).size(), 600u * 6);

  // Nothing unique to cut at: the whole is replaced, quickly.
  std::string zeros, ones;
  for (int i = 0; i < 20000; ++i) {
    zeros += i % 2 == 0 ? "0\n" : "x\n";
    ones += i % 2 == 0 ? "x\n" : "1\n";
  }
  EXPECT_TRUE(patched(zeros, unified_diff(zeros, ones, "a", "b")) == ones);
}

}  // namespace
}  // namespace nautilus::base
