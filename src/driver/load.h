// SPDX-License-Identifier: Apache-2.0
// From a file to a verified program, whatever its level; and the levels there are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/op.h"

namespace nautilus::driver {

const std::vector<const ir::Level*>& levels();
const ir::Level* find_level(std::string_view name);

// Runs the verifier of the program's level.
bool verify(const ir::Program& program, diag::Sink& sink);

// One unit of work: sources, messages and expressions live and die together.
struct Unit {
  diag::SourceMap sources;
  diag::Sink sink{sources};
  expr::ExprPool pool;
};

// A text of any level: IR text starts with `<level>.program`, everything else is the math language.
// `statics` overrides static sizes of the math language. The result is verified. Empty if something
// was reported.
std::optional<ir::Program> load_text(std::string path, std::string text,
                                     const std::map<std::string, int64_t>& statics, Unit& unit);

}  // namespace nautilus::driver
