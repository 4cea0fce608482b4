// SPDX-License-Identifier: Apache-2.0
// A client of the protocol, test/tool/test_lsp.py, tests sessions; this file tests what a client
// cannot see.
#include "lsp/analysis.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lsp/word_meanings.h"
#include "spec/language/vocabulary.h"

namespace nautilus::lsp {
namespace {

TEST(LspAnalysis, ComesBackFromJson) {
  const std::string text = "dims M\nX: f32[M]\nY[i] = relu(X[i]) + X[k] -> f32\n";
  const Analysis before = analyse("a.naut", text);
  ASSERT_FALSE(before.findings.empty());
  const auto after = analysis_from_json(to_json(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(to_json(*after), to_json(before));
  EXPECT_FALSE(analysis_from_json(nlohmann::json::array()));
}

TEST(LspAnalysis, EveryWordOfTheLanguageHasAMeaning) {
  const spec::Vocabulary& v = spec::vocabulary();
  for (const auto* words : {&v.keywords, &v.dtypes, &v.functions}) {
    for (const std::string& w : *words) EXPECT_NE(word_meaning(w, false), "") << w;
  }
  for (const std::string& w : v.reducers) EXPECT_NE(word_meaning(w, true), "") << w;
}

TEST(LspAnalysis, LibraryFunctionsSayWhatTheyAre) {
  for (const spec::LibraryFunction& f : spec::library_functions()) {
    EXPECT_NE(f.about, "") << f.name;
    EXPECT_EQ(f.text.rfind("fn " + f.name, 0), 0U) << f.text;
  }
}

}  // namespace
}  // namespace nautilus::lsp
