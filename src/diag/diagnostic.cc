// SPDX-License-Identifier: Apache-2.0
#include "diag/diagnostic.h"

namespace nautilus::diag {

const std::vector<CodeInfo>& all_codes() {
  static const std::vector<CodeInfo> codes = {
#define CODE(number, name, meaning) {#number, #name, meaning},
#include "diag/codes.def"
#undef CODE
  };
  return codes;
}

std::string counted(size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

const CodeInfo& info(Code code) { return all_codes()[static_cast<size_t>(code)]; }

Diagnostic& Diagnostic::label(std::string text) {
  primary.text = std::move(text);
  return *this;
}

Diagnostic& Diagnostic::also(Span span, std::string text) {
  if (span.is_known()) secondary.push_back({span, std::move(text)});
  return *this;
}

Diagnostic& Diagnostic::with_help(std::string text) {
  help.push_back(std::move(text));
  return *this;
}

Diagnostic& Sink::report(Code code, Span span, std::string message) {
  diagnostics_.push_back({code, std::move(message), {span, ""}, {}, {}});
  if (diagnostics_.back().is_error()) ++errors_;
  return diagnostics_.back();
}

}  // namespace nautilus::diag
