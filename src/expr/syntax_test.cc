// SPDX-License-Identifier: Apache-2.0
//
// Texts that nest deeper than the limit are refused with a message, whatever construct nests, so
// that no recursive walk runs out of stack.
#include "expr/syntax.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

std::string repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string messages_of(const std::string& text) {
  ExprPool pool;
  Scope scope;
  scope.add_var("x", DType::I64);
  scope.add_tensor("T", DType::I64, 1);
  std::string messages;
  parse_text(text, scope, pool, &messages);
  return messages;
}

TEST(Syntax, DeepNestingIsRefused) {
  const std::pair<const char*, const char*> shapes[] = {
      {"(", ")"},
      {"-", ""},
      {"not ", ""},
      {"T[", "]"},
      {"abs(", ")"},
      {"let y = ", ""},
      {"let y = 1 in ", ""},
      {"1 + ", ""},
      {"1 * ", ""},
      {"1 + (", ")"},
      {"sum[i < 3] ", ""},
      {"sum[i < ", "] 1"},
      {"sum[i < 3 from ", "] 1"},
      {"sum[i < 1 + ", "] 1"},
  };
  for (const auto& [open, close] : shapes) {
    for (int times : {1000, 40000}) {
      const std::string text = repeat(open, times) + "x" + repeat(close, times);
      EXPECT_NE(messages_of(text).find("E0106"), std::string::npos) << open;
    }
  }
}

TEST(Syntax, DepthCountsTheExtentsAndTheInitialElement) {
  const std::string long_sum = "1" + repeat(" + 1", 300);
  for (const char* head : {"sum[i < ", "sum[i < 2 from "}) {
    std::string text = "x";
    for (int level = 0; level < 5; ++level) text = head + text + " + " + long_sum + "] 1";
    EXPECT_NE(messages_of(text).find("E0106"), std::string::npos) << head;
  }
}

TEST(Syntax, NestingBelowTheLimitIsRead) {
  EXPECT_EQ(messages_of(repeat("(", 300) + "x" + repeat(")", 300)), "");
  EXPECT_EQ(messages_of("x" + repeat(" + x", 300)), "");
  EXPECT_EQ(messages_of(repeat("-", 300) + "x"), "");
}

TEST(Syntax, Messages) {
  const std::pair<const char*, const char*> cases[] = {
      {"1 < 2 < 3", "comparisons do not chain"},
      {"sum[i < 3 from 1 from 2] i", "`from` stands twice"},
      {"sum[i < 3 acc x] i", "expected a dtype after `acc`"},
      {"sum[from < 3] 1", "`from` is a reserved word, expected an axis"},
      {"f32 + 1", "expected `(` after `f32`"},
      {"in", "`in` is a reserved word"},
      {"T[x + 1](3)", "expected the name of an axis"},
      {"(x", "the text ends, expected `)` to close the parenthesis"},
      {"", "the text ends, expected an expression"},
      {"x )", "expected the end, found `)`"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_NE(messages_of(text).find(message), std::string::npos) << messages_of(text);
  }
}

}  // namespace
}  // namespace nautilus::expr
