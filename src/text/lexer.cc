// SPDX-License-Identifier: Apache-2.0
#include "text/lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace nautilus::text {
namespace {

using diag::Code;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kPairs[] = {"->", "==", "!=", "<=", ">=", "+=", ".."};
constexpr std::string_view kSingles = "()[]{},:;=<>+-*/%@$?|&!^~.";

class Lexer {
 public:
  Lexer(uint32_t file, diag::Sink& sink)
      : file_(file), sink_(sink), text_(sink.sources().text(file)) {}

  std::optional<std::vector<Lexeme>> run() {
    if (text_.size() > kMaxTextBytes) {
      sink_.report(
          Code::TooLong, {file_, 0, 0},
          fmt::format("the text has {} bytes; the limit is {}", text_.size(), kMaxTextBytes));
      return std::nullopt;
    }
    if (const auto bad = find_invalid_utf8(text_)) {
      const auto at = static_cast<uint32_t>(*bad);
      sink_.report(
          Code::BadUtf8, {file_, at, at + 1},
          fmt::format("byte 0x{:02x} is not valid UTF-8", static_cast<unsigned char>(text_[at])));
      return std::nullopt;
    }
    bool ok = true;
    while (skip_blank(), at_ < text_.size() && !sink_.is_full()) ok = token() && ok;
    push(Token::End, at_, at_);
    if (!ok || at_ < text_.size()) return std::nullopt;
    return std::move(tokens_);
  }

 private:
  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        is_line_start_ = true;
        line_begin_ = at_ + 1;
      } else if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++at_;
    }
  }

  bool token() {
    const char c = text_[at_];
    if (is_letter(c)) return name();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return number();
    if (c == '"') return quoted();
    for (std::string_view pair : kPairs) {
      if (text_.substr(at_, 2) == pair) return push(Token::Symbol, at_, at_ + 2);
    }
    if (kSingles.find(c) != std::string_view::npos) return push(Token::Symbol, at_, at_ + 1);
    return bad_character();
  }

  bool name() {
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) ||
                                  (text_[end] == '.' && end + 1 < text_.size() &&
                                   (is_letter(text_[end + 1]) || is_digit(text_[end + 1]))))) {
      ++end;
    }
    return push(Token::Name, at_, end);
  }

  bool quoted() {
    const size_t begin = at_;
    const size_t end = text_.find_first_of("\"\n", begin + 1);
    if (end == std::string_view::npos || text_[end] != '"') {
      sink_.report(Code::BadLiteral,
                   {file_, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + 1)},
                   "the text has no closing quote on its line");
      return false;
    }
    push(Token::Text, begin, end + 1);
    tokens_.back().text = text_.substr(begin + 1, end - begin - 1);
    return true;
  }

  bool number() {
    size_t end = at_;
    bool is_float = false;
    auto digits = [&] {
      while (end < text_.size() && is_digit(text_[end])) ++end;
    };
    digits();
    if (end < text_.size() && text_[end] == '.' && text_.substr(end, 2) != "..") {
      is_float = true;
      ++end;
      digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    const size_t number_end = end;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    const size_t begin = at_;
    push(is_float ? Token::Float : Token::Integer, begin, end);
    Lexeme& token = tokens_.back();
    if (end != number_end) {
      sink_.report(Code::BadLiteral, token.span, fmt::format("`{}` is not a number", token.text))
          .label("letters directly after the digits");
      return false;
    }
    return is_float ? read_float(token) : read_integer(token);
  }

  bool read_integer(Lexeme& token) {
    const auto result =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), token.integer);
    token.number = static_cast<double>(token.integer);
    if (result.ec == std::errc()) return true;
    sink_.report(Code::BadLiteral, token.span, "the integer does not fit in 64 bits");
    return false;
  }

  bool read_float(Lexeme& token) {
    const auto result =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), token.number);
    if (result.ec == std::errc() && std::isfinite(token.number)) return true;
    sink_.report(Code::BadLiteral, token.span, "the number is outside the range of f64")
        .with_help("write `inf` for infinity");
    return false;
  }

  bool bad_character() {
    size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    const std::string_view shown = text_.substr(at_, end - at_);
    const auto byte = static_cast<unsigned char>(text_[at_]);
    auto& d = sink_.report(
        Code::BadCharacter, {file_, static_cast<uint32_t>(at_), static_cast<uint32_t>(end)},
        byte < 0x20 || byte == 0x7f ? fmt::format("byte 0x{:02x} starts no token", byte)
                                    : fmt::format("`{}` starts no token", shown));
    if (byte >= 0x80) d.with_help("names are ASCII letters, digits and `_`");
    at_ = end;
    return false;
  }

  bool push(Token kind, size_t begin, size_t end) {
    const auto b = static_cast<uint32_t>(begin);
    const auto e = static_cast<uint32_t>(end);
    tokens_.push_back({kind,
                       is_line_start_,
                       static_cast<uint32_t>(begin - line_begin_),
                       {file_, b, e},
                       text_.substr(begin, end - begin),
                       0,
                       0});
    is_line_start_ = false;
    at_ = end;
    return true;
  }

  uint32_t file_;
  diag::Sink& sink_;
  std::string_view text_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  bool is_line_start_ = true;
  std::vector<Lexeme> tokens_;
};

}  // namespace

std::optional<std::vector<Lexeme>> lex(uint32_t file, diag::Sink& sink) {
  return Lexer(file, sink).run();
}

const Lexeme& Cursor::peek(size_t ahead) const {
  return (*tokens_)[std::min(position_ + ahead, tokens_->size() - 1)];
}

const Lexeme& Cursor::next() {
  const Lexeme& token = peek();
  if (token.kind != Token::End) ++position_;
  return token;
}

bool Cursor::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

bool Cursor::expect(std::string_view text, std::string_view where) {
  if (accept(text)) return true;
  unexpected(fmt::format("`{}` {}", text, where));
  return false;
}

void Cursor::unexpected(std::string_view expected) {
  const Lexeme& token = peek();
  if (token.kind == Token::End) {
    // Behind the last token: the end itself may be many blank lines further.
    const diag::Span last = previous_span();
    sink_->report(Code::UnexpectedEnd, {last.file, last.end, last.end},
                  fmt::format("the text ends, expected {}", expected));
  } else {
    sink_->report(Code::UnexpectedToken, token.span,
                  fmt::format("expected {}, found `{}`", expected, token.text));
  }
}

diag::Span Cursor::previous_span() const {
  return (*tokens_)[position_ == 0 ? 0 : position_ - 1].span;
}

}  // namespace nautilus::text
