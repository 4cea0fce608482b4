// SPDX-License-Identifier: Apache-2.0
// An analysis in the words of the protocol (version 3.17).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lsp/analysis.h"
#include "lsp/position.h"

namespace nautilus::lsp {

// Of `textDocument/publishDiagnostics`.
nlohmann::json diagnostics_json(const Analysis& analysis, const std::string& uri,
                                const LineTable& lines);
// Of `textDocument/hover`, `definition`, `documentSymbol`; null where there is nothing to say.
nlohmann::json hover_json(const Analysis& analysis, Position at, const LineTable& lines);
nlohmann::json definition_json(const Analysis& analysis, Position at, const std::string& uri,
                               const LineTable& lines);
nlohmann::json symbols_json(const Analysis& analysis, const LineTable& lines);

}  // namespace nautilus::lsp
