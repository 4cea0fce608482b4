// SPDX-License-Identifier: Apache-2.0
#include "driver/check/reduce.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "spec/language/math_syntax.h"

namespace nautilus::driver {
namespace {

using expr::Syntax;

class Reducer {
 public:
  Reducer(std::string text, const std::function<bool(const std::string&)>& has_failure, int most)
      : text_(std::move(text)), has_failure_(has_failure), most_(most) {}

  Reduction run() {
    bool is_smaller = true;
    while (is_smaller && tried_ < most_) {
      is_smaller = leave_out_lines();
      is_smaller |= replace_expressions();
      is_smaller |= shrink_sizes();
    }
    return {text_, tried_};
  }

 private:
  bool take(std::string candidate) {
    if (candidate == text_ || tried_ >= most_) return false;
    tried_++;
    if (!has_failure_(candidate)) return false;
    text_ = std::move(candidate);
    return true;
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      lines.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return lines;
  }

  // Runs of lines, long ones first, from the end: later equations need earlier ones.
  bool leave_out_lines() {
    bool is_smaller = false;
    for (size_t length = std::max<size_t>(lines_of(text_).size() / 2, 1); length > 0; length /= 2) {
      std::vector<std::string> lines = lines_of(text_);
      for (size_t end = lines.size(); end > 0;) {
        const size_t begin = end > length ? end - length : 0;
        std::string candidate;
        for (size_t i = 0; i < lines.size(); i++)
          if (i < begin || i >= end) candidate += lines[i];
        if (take(std::move(candidate))) {
          lines = lines_of(text_);
          is_smaller = true;
        }
        end = begin;
      }
    }
    return is_smaller;
  }

  struct Replacement {
    diag::Span span;
    std::string text;
  };

  static bool stands_alone(const Syntax& s) {
    return s.kind != Syntax::Kind::Infix && s.kind != Syntax::Kind::Let &&
           s.kind != Syntax::Kind::Repeat && s.kind != Syntax::Kind::Prefix &&
           s.kind != Syntax::Kind::Reduce;
  }

  void collect(const Syntax& s, const diag::SourceMap& sources,
               std::vector<Replacement>& out) const {
    for (const Syntax* arg : s.args) {
      if (s.kind != Syntax::Kind::Index) {
        const std::string inner(sources.text(arg->span));
        out.push_back({s.span, stands_alone(*arg) ? inner : "(" + inner + ")"});
      }
      collect(*arg, sources, out);
    }
    const bool is_number = s.kind == Syntax::Kind::Float || s.kind == Syntax::Kind::Integer;
    if (!is_number) out.push_back({s.span, "1"});
  }

  // Every replacement makes the text shorter, so this ends.
  bool replace_expressions() {
    bool is_smaller = false;
    for (bool is_again = true; is_again && tried_ < most_;) {
      is_again = false;
      diag::SourceMap sources;
      diag::Sink sink(sources);
      spec::MathSyntax math;
      const uint32_t file = sources.add("reduced", text_);
      if (!spec::parse_math(file, math, sink)) return is_smaller;  // IR text, or no program
      std::vector<Replacement> candidates;
      for (const spec::EquationSyntax& e : math.equations) collect(*e.body, sources, candidates);
      const auto saved = [](const Replacement& r) {
        return static_cast<int64_t>(r.span.end - r.span.begin) -
               static_cast<int64_t>(r.text.size());
      };
      std::erase_if(candidates, [&](const Replacement& r) { return saved(r) <= 0; });
      std::stable_sort(
          candidates.begin(), candidates.end(),
          [&](const Replacement& a, const Replacement& b) { return saved(a) > saved(b); });
      for (const Replacement& r : candidates) {
        const std::string whole(sources.text(file));
        if (!take(whole.substr(0, r.span.begin) + r.text + whole.substr(r.span.end))) continue;
        is_again = is_smaller = true;
        break;  // places have moved
      }
    }
    return is_smaller;
  }

  // Numbers of lines that declare sizes: 1, else half of what they are.
  bool shrink_sizes() {
    bool is_smaller = false;
    for (size_t at = 0; at < text_.size();) {
      const size_t line_begin =
          text_.rfind('\n', at) == std::string::npos || at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
      const bool is_digit = text_[at] >= '0' && text_[at] <= '9';
      const bool is_start = at == 0 || !(std::isalnum(static_cast<unsigned char>(text_[at - 1])) ||
                                         text_[at - 1] == '_' || text_[at - 1] == '.');
      if (!is_digit || !is_start || !declares_sizes(line_begin)) {
        at++;
        continue;
      }
      size_t end = at;
      int64_t value = 0;
      const auto r = std::from_chars(text_.data() + at, text_.data() + text_.size(), value);
      end = static_cast<size_t>(r.ptr - text_.data());
      for (const int64_t smaller : {int64_t{1}, value / 2}) {
        if (r.ec != std::errc() || smaller < 1 || smaller >= value) continue;
        const std::string digits = std::to_string(smaller);
        if (!take(text_.substr(0, at) + digits + text_.substr(end))) continue;
        is_smaller = true;
        end = at + digits.size();
        break;
      }
      at = end;
    }
    return is_smaller;
  }

  bool declares_sizes(size_t line_begin) const {
    const std::string line = text_.substr(line_begin, text_.find('\n', line_begin) - line_begin);
    return line.find("hint") != std::string::npos || line.find("static") != std::string::npos;
  }

  std::string text_;
  const std::function<bool(const std::string&)>& has_failure_;
  const int most_;
  int tried_ = 0;
};

}  // namespace

Reduction reduce(std::string text, const std::function<bool(const std::string&)>& has_failure,
                 int most) {
  return Reducer(std::move(text), has_failure, most).run();
}

}  // namespace nautilus::driver
