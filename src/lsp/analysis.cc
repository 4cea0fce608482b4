// SPDX-License-Identifier: Apache-2.0
#include "lsp/analysis.h"

#include "driver/load/load.h"
#include "lsp/names.h"

namespace nautilus::lsp {
namespace {

constexpr uint32_t kDocument = 1;  // the first file of a unit

Range range_of(diag::Span span) { return {span.begin, span.end}; }

Finding finding_of(const diag::Diagnostic& d, const diag::SourceMap& sources) {
  Finding out;
  out.code = std::string(diag::info(d.code).number);
  out.is_error = d.is_error();
  out.message = d.message;
  if (d.primary.span.file == kDocument) out.range = range_of(d.primary.span);
  if (!d.primary.text.empty()) out.message += "\n" + d.primary.text;
  for (const diag::Label& l : d.secondary) {
    if (l.span.file == kDocument) {
      out.related.push_back({range_of(l.span), l.text});
    } else if (l.span.is_known()) {
      out.message += "\n" + std::string(sources.path(l.span.file)) + ": " + l.text;
    }
  }
  for (const std::string& help : d.help) out.message += "\nhelp: " + help;
  return out;
}

}  // namespace

Analysis analyse(const std::string& path, const std::string& text) {
  driver::Unit unit;
  const auto program = driver::load_text(path, text, {}, unit);
  Analysis out;
  for (const diag::Diagnostic& d : unit.sink.all())
    out.findings.push_back(finding_of(d, unit.sources));
  if (!driver::is_ir_text(text)) add_names(text, program, out);
  return out;
}

}  // namespace nautilus::lsp
