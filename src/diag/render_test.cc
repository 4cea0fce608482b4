// SPDX-License-Identifier: Apache-2.0
//
// The places of marks and labels of a message, for every shape of source line.
#include "diag/render.h"

#include <set>

#include <gtest/gtest.h>

namespace nautilus::diag {
namespace {

class Render : public testing::Test {
 protected:
  // The place of the `occurrence`-th appearance of a piece of the text.
  Span at(std::string_view piece, int occurrence = 0) const {
    size_t found = sources_.text(file_).find(piece);
    while (occurrence-- > 0) found = sources_.text(file_).find(piece, found + 1);
    EXPECT_NE(found, std::string_view::npos) << piece;
    return {file_, static_cast<uint32_t>(found), static_cast<uint32_t>(found + piece.size())};
  }
  void set_text(std::string text) { file_ = sources_.add("a.naut", std::move(text)); }
  std::string rendered() const { return render_all(sink_); }

  SourceMap sources_;
  Sink sink_{sources_};
  uint32_t file_ = 0;
};

TEST_F(Render, LabelsOfOneLineHangBelowEachOther) {
  set_text("dims M\nY[i, o] = sum[k] X[i, k] * W[j, k]\n");
  sink_.report(Code::UnboundIndex, at("j"), "index `j` is not bound by any axis")
      .label("neither an output axis nor a reduction axis")
      .also(at("Y[i, o]"), "output axes")
      .also(at("sum[k]"), "reduction axis")
      .with_help("bind it")
      .with_help("or not");
  EXPECT_EQ(rendered(), R"(error[E0301]: index `j` is not bound by any axis
 --> a.naut:2:30
   |
 2 | Y[i, o] = sum[k] X[i, k] * W[j, k]
   | -------   ------             ^ neither an output axis nor a reduction axis
   | |         |
   | |         reduction axis
   | output axes
   = help: bind it
   = help: or not
)");
}

TEST_F(Render, LinesAreShownInTheOrderOfTheText) {
  set_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n");
  sink_.report(Code::Duplicate, at("ten"), "m").also(at("two"), "b").also(at("three"), "c");
  EXPECT_EQ(rendered(), R"(error[E0202]: m
  --> a.naut:10:1
    |
  2 | two
    | --- b
  3 | three
    | ----- c
...
 10 | ten
    | ^^^
)");
}

TEST_F(Render, OverlappingMarksKeepThePrimaryVisible) {
  set_text("f(x + y)\n");
  sink_.report(Code::WrongDType, at("+"), "m").label("here").also(at("f(x + y)"), "in this call");
  EXPECT_EQ(rendered(), R"(error[E0403]: m
 --> a.naut:1:5
   |
 1 | f(x + y)
   | ----^---
   | |   |
   | |   here
   | in this call
)");
}

TEST_F(Render, ASpanOfSeveralLinesIsMarkedOnItsFirst) {
  set_text("a = b +\n    c\n");
  sink_.report(Code::BadStatement, at("b +\n    c"), "m");
  EXPECT_EQ(rendered(), "error[E0206]: m\n --> a.naut:1:5\n   |\n 1 | a = b +\n   |     ^^^\n");
}

TEST_F(Render, TabsAndControlCharactersTakeOneColumn) {
  set_text("\ta\x01\x7f = b\r\n");
  sink_.report(Code::UndefinedName, at("b"), "m");
  EXPECT_EQ(rendered(), "error[E0201]: m\n --> a.naut:1:8\n   |\n 1 |  a   = b\n   |        ^\n");
}

TEST_F(Render, ColumnsCountCodePoints) {
  set_text("# \xC3\xA4\xE2\x82\xAC\xF0\x9D\x94\xB8 b\n");
  sink_.report(Code::UndefinedName, at("b"), "m");
  EXPECT_EQ(rendered(),
            "error[E0201]: m\n --> a.naut:1:7\n   |\n"
            " 1 | # \xC3\xA4\xE2\x82\xAC\xF0\x9D\x94\xB8 b\n   |       ^\n");
}

TEST_F(Render, WhatTheTerminalWouldActOnIsReplaced) {
  // A stray byte, a C1 control, a change of direction, a surrogate.
  set_text("# \x80 \xC2\x9B \xE2\x80\xAE \xED\xA0\x80 b\n");
  sink_.report(Code::BadUtf8, at("b"), "m");
  EXPECT_EQ(rendered(),
            "error[E0102]: m\n --> a.naut:1:13\n   |\n 1 | # ? ? ? ??? b\n   |             ^\n");
}

TEST_F(Render, TheEndOfTheTextHasAPlace) {
  set_text("a +");
  sink_.report(Code::UnexpectedEnd, {file_, 3, 3}, "m");
  EXPECT_EQ(rendered(), "error[E0105]: m\n --> a.naut:1:4\n   |\n 1 | a +\n   |    ^\n");
  Sink other(sources_);
  const uint32_t empty = sources_.add("empty.naut", "");
  other.report(Code::UnexpectedEnd, {empty, 0, 0}, "m");
  EXPECT_EQ(render_all(other), "error[E0105]: m\n --> empty.naut:1:1\n   |\n 1 |\n   | ^\n");
}

TEST_F(Render, ALongLineIsCutAroundTheFirstMark) {
  set_text(std::string(500, 'a') + "X" + std::string(50, 'b') + "Y" + std::string(500, 'c'));
  sink_.report(Code::UndefinedName, at("X"), "m").label("first").also(at("Y"), "second");
  const std::string expected = " 1 | ..." + std::string(60, 'a') + "X" + std::string(50, 'b') +
                               "Y" + std::string(42, 'c') + "...\n   | " + std::string(63, ' ') +
                               "^" + std::string(50, ' ') + "- second\n";
  EXPECT_NE(rendered().find(expected), std::string::npos) << rendered();
  EXPECT_NE(rendered().find("a.naut:1:501"), std::string::npos);
}

TEST_F(Render, ALongLineIsCutOnlyWhereItIsLonger) {
  set_text("X" + std::string(300, 'c') + "Z");
  sink_.report(Code::UndefinedName, at("X"), "m").also(at("Z"), "far");
  EXPECT_NE(rendered().find(" 1 | X" + std::string(153, 'c') + "...\n   | ^" +
                            std::string(153, ' ') + "- far\n"),
            std::string::npos)
      << rendered();
  Sink other(sources_);
  other.report(Code::UndefinedName, at("Z"), "m");
  EXPECT_NE(render_all(other).find(" 1 | ..." + std::string(60, 'c') + "Z\n   | " +
                                   std::string(63, ' ') + "^\n"),
            std::string::npos)
      << render_all(other);
}

TEST_F(Render, ALongLineIsCutBetweenCodePoints) {
  std::string text = "# ";
  for (int i = 0; i < 400; ++i) text += "\xE2\x82\xAC";
  set_text(text + "b");
  sink_.report(Code::UndefinedName, at("b"), "m");
  std::string shown = " 1 | ...";
  for (int i = 0; i < 60; ++i) shown += "\xE2\x82\xAC";
  EXPECT_NE(rendered().find(shown + "b\n   | " + std::string(63, ' ') + "^\n"), std::string::npos)
      << rendered();
  Sink other(sources_);
  other.report(Code::UndefinedName, at("#"), "m");
  const std::string cut = render_all(other);
  for (size_t i = 0; i < cut.size();) {
    const size_t bytes = code_point_bytes(std::string_view(cut).substr(i));
    ASSERT_GT(bytes, 0u) << i;
    i += bytes;
  }
}

TEST_F(Render, OtherFilesComeAfterThePrimary) {
  const uint32_t lib = sources_.add("lib.naut", "fn f(x) = x\n");
  set_text("y = f(1, 2)\n");
  sink_.report(Code::WrongArguments, at("f(1, 2)"), "m").also({lib, 3, 4}, "defined here");
  EXPECT_EQ(rendered(), R"(error[E0205]: m
 --> a.naut:1:5
   |
 1 | y = f(1, 2)
   |     ^^^^^^^
 ::: lib.naut:1:4
   |
 1 | fn f(x) = x
   |    - defined here
)");
}

TEST_F(Render, AMessageWithoutPlaceHasOnlyItsHead) {
  sink_.report(Code::BadInput, {}, "no file").with_help("give one");
  EXPECT_EQ(rendered(), "error[E0601]: no file\n   = help: give one\n");
  set_text("a\nb\n");
  Sink other(sources_);
  other.report(Code::BadInput, {}, "m").also(at("b"), "declared here").also({}, "dropped");
  EXPECT_EQ(render_all(other),
            "error[E0601]: m\n --> a.naut:2:1\n   |\n 2 | b\n   | - declared here\n");
}

TEST_F(Render, ColourSurroundsTheHeadOnly) {
  set_text("a\n");
  sink_.report(Code::Unused, at("a"), "m");
  EXPECT_EQ(render_all(sink_, true),
            "\x1b[1;33mwarning[W0001]\x1b[0m\x1b[1m: m\x1b[0m\n --> a.naut:1:1\n   |\n"
            " 1 | a\n   | ^\n");
  EXPECT_FALSE(sink_.has_errors());
}

TEST(Codes, NumbersAndNamesAreUnique) {
  std::set<std::string_view> seen;
  for (const CodeInfo& c : all_codes()) {
    EXPECT_TRUE(seen.insert(c.number).second) << c.number;
    EXPECT_TRUE(seen.insert(c.name).second) << c.name;
    EXPECT_EQ(c.number.size(), 5u);
  }
}

TEST(Source, JoinCoversBothWithinOneText) {
  EXPECT_EQ(join({1, 4, 6}, {1, 2, 5}), (Span{1, 2, 6}));
  EXPECT_EQ(join({1, 4, 6}, {2, 0, 1}), (Span{1, 4, 6}));
  EXPECT_EQ(join({}, {2, 0, 1}), (Span{2, 0, 1}));
  EXPECT_EQ(join({1, 4, 6}, {}), (Span{1, 4, 6}));
}

}  // namespace
}  // namespace nautilus::diag
