// SPDX-License-Identifier: Apache-2.0
#include "lsp/replies.h"

#include <nlohmann/json.hpp>

namespace nautilus::lsp {
namespace {

nlohmann::json place_json(Position p) { return {{"line", p.line}, {"character", p.character}}; }

nlohmann::json span_json(Range r, const LineTable& lines) {
  return {{"start", place_json(lines.position(r.begin))},
          {"end", place_json(lines.position(r.end))}};
}

// The smallest name around a position; the end of a name counts, for a cursor directly after it.
const Use* use_at(const Analysis& analysis, size_t offset) {
  const Use* best = nullptr;
  for (const Use& u : analysis.uses) {
    if (offset < u.range.begin || offset > u.range.end) continue;
    const bool is_inside = offset < u.range.end;
    if (!best || (is_inside && offset >= best->range.end)) best = &u;
  }
  return best;
}

// Numbers of SymbolKind.
int symbol_kind(EntryKind kind) {
  switch (kind) {
    case EntryKind::Size:
      return 14;  // constant
    case EntryKind::Scalar:
      return 16;  // number
    case EntryKind::Input:
      return 8;  // field
    case EntryKind::Equation:
      return 13;  // variable
    case EntryKind::Output:
      return 7;  // property
    case EntryKind::Function:
      return 12;  // function
  }
  return 13;
}

}  // namespace

nlohmann::json diagnostics_json(const Analysis& analysis, const std::string& uri,
                                const LineTable& lines) {
  nlohmann::json out = nlohmann::json::array();
  for (const Finding& f : analysis.findings) {
    nlohmann::json j = {{"range", span_json(f.range, lines)},
                        {"severity", f.is_error ? 1 : 2},
                        {"code", f.code},
                        {"source", "nautilus"},
                        {"message", f.message}};
    for (const Remark& r : f.related)
      j["relatedInformation"].push_back(
          {{"location", {{"uri", uri}, {"range", span_json(r.range, lines)}}},
           {"message", r.text}});
    out.push_back(j);
  }
  return out;
}

nlohmann::json hover_json(const Analysis& analysis, Position at, const LineTable& lines) {
  const Use* use = use_at(analysis, lines.offset(at));
  if (!use) return nullptr;
  return {{"contents", {{"kind", "markdown"}, {"value", analysis.meanings[use->meaning].text}}},
          {"range", span_json(use->range, lines)}};
}

nlohmann::json definition_json(const Analysis& analysis, Position at, const std::string& uri,
                               const LineTable& lines) {
  const Use* use = use_at(analysis, lines.offset(at));
  const auto definition = use ? analysis.meanings[use->meaning].definition : std::nullopt;
  if (!definition) return nullptr;
  return {{"uri", uri}, {"range", span_json(*definition, lines)}};
}

nlohmann::json symbols_json(const Analysis& analysis, const LineTable& lines) {
  nlohmann::json out = nlohmann::json::array();
  for (const Entry& e : analysis.outline)
    out.push_back({{"name", e.name},
                   {"detail", e.detail},
                   {"kind", symbol_kind(e.kind)},
                   {"range", span_json(e.range, lines)},
                   {"selectionRange", span_json(e.range, lines)}});
  return out;
}

}  // namespace nautilus::lsp
