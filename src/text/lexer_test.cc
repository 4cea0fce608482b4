// SPDX-License-Identifier: Apache-2.0
//
// Tokens, their places and the texts that have none: bad numbers, bad characters, malformed UTF-8.
#include "text/lexer.h"

#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diag/render.h"
#include "text/utf8.h"

namespace nautilus::text {
namespace {

struct Lexed {
  diag::SourceMap sources;
  diag::Sink sink{sources};
  std::optional<std::vector<Lexeme>> tokens;

  explicit Lexed(std::string text) { tokens = lex(sources.add("t", std::move(text)), sink); }

  // The tokens, separated by blanks; the message if there are none.
  std::string shown() const {
    if (!tokens) return sink.all().empty() ? "<nothing>" : sink.all()[0].message;
    std::string out;
    for (const Lexeme& t : *tokens) out += std::string(t.text) + " ";
    return out;
  }
};

TEST(Lexer, Tokens) {
  const std::pair<const char*, const char*> cases[] = {
      {"a->b==c!=d<=e>=f+=g..h", "a -> b == c != d <= e >= f += g .. h  "},
      {"a-> b", "a -> b  "},
      {"P.e P.e.f2 K.2 P. e", "P.e P.e.f2 K.2 P . e  "},
      {"a.1", "a.1  "},
      {"a..b 0..3", "a .. b 0 .. 3  "},
      {"x_1 _y", "x_1 _y  "},
      {"1.5e-3 .5 1. 1e9 2E+4", "1.5e-3 .5 1. 1e9 2E+4  "},
      {"1.5.2", "1.5 .2  "},
      {"@$?|&!^~{};:", "@ $ ? | & ! ^ ~ { } ; :  "},
      {"a # b\nc #", "a c  "},
      {"# only \xC3\xA4 comment", " "},
      {"", " "},
      {" \t\r\n\n", " "},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Lexed(text).shown(), expected) << text;
}

TEST(Lexer, Numbers) {
  const Lexed l("0 007 9223372036854775807 0.1 5e-324 1.7976931348623157e308 1e3");
  ASSERT_TRUE(l.tokens);
  const auto& t = *l.tokens;
  EXPECT_EQ(t[0].integer, 0);
  EXPECT_EQ(t[1].integer, 7);
  EXPECT_EQ(t[2].integer, INT64_MAX);
  EXPECT_EQ(t[2].number, 0x1p63);
  EXPECT_EQ(t[3].number, 0.1);
  EXPECT_EQ(t[4].number, 5e-324);
  EXPECT_EQ(t[5].number, std::numeric_limits<double>::max());
  EXPECT_EQ(t[6].kind, Token::Float);
}

TEST(Lexer, BadNumbers) {
  const std::pair<const char*, const char*> cases[] = {
      {"9223372036854775808", "the integer does not fit in 64 bits"},
      {"99999999999999999999999", "the integer does not fit in 64 bits"},
      {"1e309", "the number is outside the range of f64"},
      {"1e-400", "the number is outside the range of f64"},
      {"0x10", "`0x10` is not a number"},
      {"1_000", "`1_000` is not a number"},
      {"12ab", "`12ab` is not a number"},
      {"1e", "`1e` is not a number"},
      {"1e+", "`1e` is not a number"},
      {"1.5f", "`1.5f` is not a number"},
  };
  for (const auto& [text, message] : cases) {
    const Lexed l(text);
    EXPECT_FALSE(l.tokens) << text;
    EXPECT_EQ(l.shown(), message);
    EXPECT_EQ(l.sink.all()[0].code, diag::Code::BadLiteral);
  }
}

TEST(Lexer, BadCharacters) {
  EXPECT_EQ(Lexed("a ` b").shown(), "``` starts no token");
  EXPECT_EQ(Lexed("\\").shown(), "`\\` starts no token");
  EXPECT_EQ(Lexed("\xCE\xB1 = 1").shown(), "`\xCE\xB1` starts no token");
  EXPECT_EQ(Lexed(std::string("a\0b", 3)).shown(), "byte 0x00 starts no token");
  EXPECT_EQ(Lexed("\x7f").shown(), "byte 0x7f starts no token");
  EXPECT_EQ(Lexed("\xEF\xBB\xBF"
                  "a")
                .shown(),
            "`\xEF\xBB\xBF` starts no token");
  const Lexed two("` a `");
  EXPECT_EQ(two.sink.all().size(), 2u);
}

TEST(Lexer, QuotedTexts) {
  const Lexed l("oracle \"a b/c.naut\" x");
  ASSERT_TRUE(l.tokens);
  ASSERT_EQ(l.tokens->size(), 4u);
  EXPECT_EQ((*l.tokens)[1].kind, Token::Text);
  EXPECT_EQ((*l.tokens)[1].text, "a b/c.naut");
  EXPECT_FALSE((*l.tokens)[1].is("a b/c.naut"));
  EXPECT_EQ(Lexed("a \" b\n\"").shown(), "the text has no closing quote on its line");
}

TEST(Lexer, StopsAfterEnoughErrors) {
  Lexed l(std::string(1000, '`'));
  EXPECT_FALSE(l.tokens);
  EXPECT_EQ(l.sink.all().size(), 20u);
  EXPECT_FALSE(lex(l.sources.add("other", "a b c"), l.sink));  // not a part of its tokens
}

TEST(Lexer, LinesAndColumns) {
  const Lexed l("a b\r\n  c # x\n\td\n");
  ASSERT_TRUE(l.tokens);
  const auto& t = *l.tokens;
  ASSERT_EQ(t.size(), 5u);
  EXPECT_TRUE(t[0].is_line_start);
  EXPECT_FALSE(t[1].is_line_start);
  EXPECT_EQ(t[1].column, 2u);
  EXPECT_TRUE(t[2].is_line_start);
  EXPECT_EQ(t[2].column, 2u);
  EXPECT_TRUE(t[3].is_line_start);
  EXPECT_EQ(t[3].column, 1u);
  EXPECT_EQ(t[4].kind, Token::End);
  for (const Lexeme& x : t) EXPECT_EQ(l.sources.text(x.span), x.text);
}

TEST(Lexer, TextsAboveTheLimitAreRefused) {
  EXPECT_TRUE(Lexed(std::string(kMaxTextBytes, ' ')).tokens);
  EXPECT_TRUE(Lexed(std::string(kMaxTextBytes, 'a')).tokens);
  const Lexed l(std::string(kMaxTextBytes + 1, ' '));
  EXPECT_FALSE(l.tokens);
  EXPECT_EQ(l.sink.all()[0].code, diag::Code::TooLong);
  EXPECT_LT(diag::render_all(l.sink).size(), 1000u);
}

TEST(Lexer, TheCursorStaysAtTheEnd) {
  Lexed l("a (");
  ASSERT_TRUE(l.tokens);
  Cursor c(*l.tokens, l.sink);
  EXPECT_EQ(c.peek(100).kind, Token::End);
  EXPECT_TRUE(c.accept("a"));
  EXPECT_FALSE(c.accept(")"));
  EXPECT_FALSE(c.expect(")", "here"));
  EXPECT_EQ(l.sink.last().message, "expected `)` here, found `(`");
  c.next();
  c.next();
  c.next();
  EXPECT_EQ(c.position(), 2u);
  EXPECT_FALSE(c.expect(")", "here"));
  EXPECT_EQ(l.sink.last().code, diag::Code::UnexpectedEnd);
}

TEST(Utf8, EveryCodePointIsAcceptedAndItsNeighboursAreNot) {
  auto encode = [](uint32_t p, int length) {
    std::string out;
    if (length == 1) return std::string(1, static_cast<char>(p));
    const uint32_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(lead[length] | p >> (6 * (length - 1)));
    for (int k = length - 2; k >= 0; --k) out += static_cast<char>(0x80 | (p >> (6 * k) & 0x3F));
    return out;
  };
  for (uint32_t p = 0; p <= 0x110000; ++p) {
    const int length = p < 0x80 ? 1 : p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    const bool is_valid = p <= 0x10FFFF && (p < 0xD800 || p > 0xDFFF);
    ASSERT_EQ(!find_invalid_utf8(encode(p, length)), is_valid) << p;
    if (length < 4) {
      ASSERT_EQ(find_invalid_utf8("a" + encode(p, length + 1)), 1u) << p;  // overlong
    }
    if (length > 1) {
      std::string cut = encode(p, length);
      cut.pop_back();
      ASSERT_EQ(find_invalid_utf8(cut), 0u) << p;
      ASSERT_EQ(find_invalid_utf8(cut + "a"), 0u) << p;
    }
  }
}

TEST(Utf8, MalformedBytes) {
  for (int lead = 0x80; lead <= 0xFF; ++lead) {
    const std::string alone(1, static_cast<char>(lead));
    EXPECT_EQ(find_invalid_utf8("ab" + alone), 2u) << lead;
    EXPECT_EQ(find_invalid_utf8("ab" + alone + alone), 2u) << lead;
  }
  EXPECT_EQ(find_invalid_utf8("\xC3\xA4\xA4"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xF8\x88\x80\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  const Lexed l("a # \xC3(\n");
  EXPECT_EQ(l.shown(), "byte 0xc3 is not valid UTF-8");
  EXPECT_EQ(diag::render_all(l.sink),
            "error[E0102]: byte 0xc3 is not valid UTF-8\n --> t:1:5\n   |\n"
            " 1 | a # ?(\n   |     ^\n");
}

}  // namespace
}  // namespace nautilus::text
