// SPDX-License-Identifier: Apache-2.0
#include "reducer.h"

#include <algorithm>
#include <vector>

#include "tokens.h"

namespace nautilus::fuzz {
namespace {

class Reducer {
 public:
  Reducer(std::string text, uint64_t seed, const std::string& key, TextCheck check,
          Clock::time_point deadline)
      : text_(std::move(text)), seed_(seed), key_(key), check_(check), deadline_(deadline) {}

  std::string run() {
    bool is_smaller = true;
    while (is_smaller && Clock::now() < deadline_) {
      is_smaller = drop_lines();
      is_smaller |= keep_parts();
      is_smaller |= drop_tokens();
    }
    return text_;
  }

 private:
  bool try_text(const std::string& candidate) {
    if (candidate.size() >= text_.size() || Clock::now() >= deadline_) return false;
    const Batch batch =
        run_batch(0, 1, deadline_, [&](int64_t) { return check_(candidate, seed_); });
    if (!batch.failure || batch.failure->key != key_) return false;
    text_ = candidate;
    return true;
  }

  bool try_replace(size_t begin, size_t end, std::string_view with) {
    std::string candidate = text_;
    candidate.replace(begin, end - begin, with);
    return try_text(candidate);
  }

  bool drop_lines() {
    bool any = false;
    size_t at = 0;
    while (at < text_.size()) {
      const size_t newline = text_.find('\n', at);
      const size_t end = newline == std::string::npos ? text_.size() : newline + 1;
      if (try_replace(at, end, "")) {
        any = true;
      } else {
        at = end;
      }
    }
    return any;
  }

  // Where the bracket opened at `open` closes, or the number of tokens.
  size_t closing(const std::vector<Token>& tokens, size_t open) const {
    int depth = 0;
    for (size_t k = open; k < tokens.size(); ++k) {
      const char c = text_[tokens[k].begin];
      if (c == '(' || c == '[') ++depth;
      if ((c == ')' || c == ']') && --depth == 0) return k;
    }
    return tokens.size();
  }

  // Replaces `f(a, b)` and `(a + b)` by a, by b, or by a number.
  bool keep_parts() {
    bool any = false;
    for (size_t k = 0;; ++k) {
      const std::vector<Token> tokens = tokens_of(text_);
      if (k >= tokens.size() || Clock::now() >= deadline_) return any;
      if (text_[tokens[k].begin] != '(') continue;
      const size_t close = closing(tokens, k);
      if (close == tokens.size()) continue;
      size_t first = k;  // with the function's name and axes
      if (first > 0 && text_[tokens[first - 1].begin] == ']') {
        size_t open = first - 1;
        while (open > 0 && text_[tokens[open].begin] != '[') --open;
        first = open;
      }
      if (first > 0 && std::isalpha(static_cast<unsigned char>(text_[tokens[first - 1].begin])))
        --first;
      if (keep_part(tokens, first, k, close)) {
        any = true;
        k = first > 0 ? first - 1 : 0;
      }
    }
  }

  bool keep_part(const std::vector<Token>& tokens, size_t first, size_t open, size_t close) {
    const size_t begin = tokens[first].begin;
    const size_t end = tokens[close].end;
    for (const std::string_view leaf : {"1", "0.5", "true"}) {
      if (try_replace(begin, end, leaf)) return true;
    }
    size_t part = open + 1;
    for (size_t k = open + 1; k <= close; ++k) {
      const char c = text_[tokens[k].begin];
      if (c == '(' || c == '[') {
        k = closing(tokens, k);
        continue;
      }
      const size_t length = tokens[k].end - tokens[k].begin;
      const std::string_view word = std::string_view(text_).substr(tokens[k].begin, length);
      const bool is_break = k == close || std::string_view(",+-*/%<>=!").find(c) < 10 ||
                            word == "and" || word == "or" || word == "in";
      if (!is_break) continue;
      if (k > part) {
        const size_t from = tokens[part].begin;
        const std::string text = text_.substr(from, tokens[k - 1].end - from);
        if (try_replace(begin, end, text)) return true;
        if (try_replace(begin, end, "(" + text + ")")) return true;
      }
      part = k + 1;
    }
    return false;
  }

  bool drop_tokens() {
    bool any = false;
    for (const size_t width : {16U, 8U, 5U, 4U, 3U, 2U, 1U}) {
      for (size_t k = 0;;) {
        const std::vector<Token> tokens = tokens_of(text_);
        if (k + width > tokens.size() || Clock::now() >= deadline_) break;
        if (try_replace(tokens[k].begin, tokens[k + width - 1].end, "")) {
          any = true;
        } else {
          ++k;
        }
      }
    }
    return any;
  }

  std::string text_;
  uint64_t seed_;
  const std::string& key_;
  TextCheck check_;
  Clock::time_point deadline_;
};

}  // namespace

std::string reduce(std::string text, uint64_t seed, const std::string& key, TextCheck check,
                   Clock::time_point deadline) {
  return Reducer(std::move(text), seed, key, check, deadline).run();
}

}  // namespace nautilus::fuzz
