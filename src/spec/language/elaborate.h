// SPDX-License-Identifier: Apache-2.0
// The front door: a .naut text to a verified spec program.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "diag/diagnostic.h"
#include "spec/ops.h"

namespace nautilus::spec {

struct ElaborateOptions {
  // Other values for `static` sizes, by name. Names that are not statics of the program are ignored
  // here.
  std::map<std::string, int64_t> statics;
};

// Parses the file (and the standard library), resolves names, infers extents, inserts casts,
// expands functions and checks index ranges. Empty if something was reported.
std::optional<ir::Program> elaborate(uint32_t file, const ElaborateOptions& options,
                                     expr::ExprPool& pool, diag::SourceMap& sources,
                                     diag::Sink& sink);

}  // namespace nautilus::spec
