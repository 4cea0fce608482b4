// SPDX-License-Identifier: Apache-2.0
#include "spec/language/vocabulary.h"

#include <algorithm>

#include "base/check.h"
#include "expr/build.h"
#include "expr/dtype.h"
#include "expr/expr.h"
#include "spec/language/library.h"
#include "spec/language/math_syntax.h"

namespace nautilus::spec {
namespace {

// The comment lines directly above the line that `offset` is on.
std::string comment_above(std::string_view text, size_t offset) {
  std::vector<std::string_view> lines;
  size_t begin = text.substr(0, offset).rfind('\n');
  while (begin != std::string_view::npos && begin > 0) {
    const size_t before = text.substr(0, begin).rfind('\n');
    const size_t first = before == std::string_view::npos ? 0 : before + 1;
    std::string_view line = text.substr(first, begin - first);
    if (!line.starts_with('#')) break;
    line.remove_prefix(std::min<size_t>(line.size(), line.starts_with("# ") ? 2 : 1));
    lines.push_back(line);
    begin = before;
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    out += out.empty() ? "" : "\n";
    out += *line;
  }
  return out;
}

}  // namespace

const std::vector<LibraryFunction>& library_functions() {
  static const std::vector<LibraryFunction> all = [] {
    std::vector<LibraryFunction> out;
    for (const LibraryText& t : library_texts()) {
      diag::SourceMap sources;
      diag::Sink sink{sources};
      MathSyntax syntax;
      const bool ok =
          parse_math(sources.add(std::string(t.path), std::string(t.text)), syntax, sink);
      NAUT_CHECK(ok, "the library text {} does not parse", t.path);
      for (const FunctionSyntax& f : syntax.functions) {
        const size_t begin = t.text.rfind("fn", f.name.span.begin);
        out.push_back({.name = std::string(f.name.text),
                       .about = comment_above(t.text, begin),
                       .text = std::string(t.text.substr(begin, f.body->span.end - begin)),
                       .file = t.path});
      }
    }
    return out;
  }();
  return all;
}

const Vocabulary& vocabulary() {
  static const Vocabulary all = [] {
    Vocabulary v;
    v.keywords.assign(expr::keywords().begin(), expr::keywords().end());
    for (const char* word : {"size", "table", "repeat", "rank"})
      v.keywords.emplace_back(word);  // not reserved
    v.reducers.assign(expr::reducer_names().begin(), expr::reducer_names().end());
    v.reducers.emplace_back("mean");  // a sum and a quotient, so that levels below have none
    v.dtypes = expr::dtype_names();
    const auto functions = expr::function_names();
    v.functions.assign(functions.begin(), functions.end());
    for (const LibraryFunction& f : library_functions()) v.library.push_back(f.name);
    return v;
  }();
  return all;
}

}  // namespace nautilus::spec
