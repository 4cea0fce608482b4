// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "lsp/analysis.h"
#include "lsp/json_access.h"

namespace nautilus::lsp {
namespace {

nlohmann::json range_json(const Range& r) { return nlohmann::json::array({r.begin, r.end}); }

Range range_in(const nlohmann::json& j, const char* key) {
  const nlohmann::json* r = member(j, key);
  if (!r || !r->is_array() || r->size() != 2) return {};
  const auto bound = [&](size_t k) {
    return (*r)[k].is_number_unsigned() ? (*r)[k].get<uint32_t>() : 0;
  };
  return {bound(0), bound(1)};
}

}  // namespace

nlohmann::json to_json(const Analysis& analysis) {
  nlohmann::json out = {{"findings", nlohmann::json::array()},
                        {"meanings", nlohmann::json::array()},
                        {"uses", nlohmann::json::array()},
                        {"outline", nlohmann::json::array()}};
  for (const Finding& f : analysis.findings) {
    nlohmann::json related = nlohmann::json::array();
    for (const Remark& r : f.related)
      related.push_back({{"range", range_json(r.range)}, {"text", r.text}});
    out["findings"].push_back({{"code", f.code},
                               {"error", f.is_error},
                               {"range", range_json(f.range)},
                               {"message", f.message},
                               {"related", related}});
  }
  for (const Meaning& m : analysis.meanings) {
    nlohmann::json j = {{"text", m.text}};
    if (m.definition) j["definition"] = range_json(*m.definition);
    out["meanings"].push_back(j);
  }
  for (const Use& u : analysis.uses)
    out["uses"].push_back({{"range", range_json(u.range)}, {"meaning", u.meaning}});
  for (const Entry& e : analysis.outline)
    out["outline"].push_back({{"name", e.name},
                              {"detail", e.detail},
                              {"kind", static_cast<int>(e.kind)},
                              {"range", range_json(e.range)}});
  return out;
}

std::optional<Analysis> analysis_from_json(const nlohmann::json& json) {
  const nlohmann::json* findings = member(json, "findings");
  const nlohmann::json* meanings = member(json, "meanings");
  const nlohmann::json* uses = member(json, "uses");
  const nlohmann::json* outline = member(json, "outline");
  if (!findings || !meanings || !uses || !outline) return std::nullopt;
  Analysis out;
  for (const nlohmann::json& j : *findings) {
    Finding f{.code = text_in(j, "code"),
              .is_error = flag_in(j, "error"),
              .range = range_in(j, "range"),
              .message = text_in(j, "message"),
              .related = {}};
    if (const nlohmann::json* related = member(j, "related")) {
      for (const nlohmann::json& r : *related)
        f.related.push_back({range_in(r, "range"), text_in(r, "text")});
    }
    out.findings.push_back(std::move(f));
  }
  for (const nlohmann::json& j : *meanings)
    out.meanings.push_back({text_in(j, "text"), member(j, "definition")
                                                    ? std::optional(range_in(j, "definition"))
                                                    : std::nullopt});
  for (const nlohmann::json& j : *uses) {
    const auto meaning = integer_in(j, "meaning").value_or(-1);
    if (meaning < 0 || static_cast<size_t>(meaning) >= out.meanings.size()) return std::nullopt;
    out.uses.push_back({range_in(j, "range"), static_cast<uint32_t>(meaning)});
  }
  for (const nlohmann::json& j : *outline)
    out.outline.push_back({text_in(j, "name"), text_in(j, "detail"),
                           static_cast<EntryKind>(integer_in(j, "kind").value_or(0)),
                           range_in(j, "range")});
  return out;
}

}  // namespace nautilus::lsp
