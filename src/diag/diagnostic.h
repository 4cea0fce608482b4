// SPDX-License-Identifier: Apache-2.0
// Messages about the user's program: a code, a sentence, labelled places, help.
//
// Functions that may find errors take a Sink and return an empty optional when they reported one.
// Compiler bugs are not diagnostics; they are NAUT_CHECK (base/check.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diag/source.h"

namespace nautilus::diag {

enum class Code : uint16_t {
#define CODE(number, name, meaning) name,
#include "diag/codes.def"
#undef CODE
};

struct CodeInfo {
  std::string_view number;  // "E0301"
  std::string_view name;    // "UnboundIndex"
  std::string_view meaning;
};
const CodeInfo& info(Code code);
const std::vector<CodeInfo>& all_codes();

// `1 axis`, `2 axes`.
std::string counted(size_t count, std::string_view one, std::string_view many);

struct Label {
  Span span;
  std::string text;  // says only what this place contributes
};

struct Diagnostic {
  Code code;
  std::string message;
  Label primary;
  std::vector<Label> secondary;
  std::vector<std::string> help;

  bool is_error() const { return info(code).number[0] == 'E'; }

  Diagnostic& label(std::string text);
  Diagnostic& also(Span span, std::string text);
  Diagnostic& with_help(std::string text);
};

class Sink {
 public:
  explicit Sink(const SourceMap& sources) : sources_(sources) {}

  // The reference is valid until the next report.
  Diagnostic& report(Code code, Span span, std::string message);

  Diagnostic& last() { return diagnostics_.back(); }

  bool has_errors() const { return errors_ != 0; }
  // More errors than this are of no use to a reader; callers that loop over statements stop here.
  bool is_full() const { return errors_ >= 20; }
  const std::vector<Diagnostic>& all() const { return diagnostics_; }
  const SourceMap& sources() const { return sources_; }

 private:
  const SourceMap& sources_;
  std::vector<Diagnostic> diagnostics_;
  int errors_ = 0;
};

}  // namespace nautilus::diag
